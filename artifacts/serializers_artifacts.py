"""What the REST interface shows of artifacts."""

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from artifacts import standing
from artifacts.models import Artifact


class ArtifactShown(serializers.ModelSerializer[Artifact]):
    """A snapshot that lies whole and verified in a root, or did."""

    node_id = serializers.UUIDField(read_only=True)
    node = serializers.CharField(source="node.display_name", read_only=True)
    root_id = serializers.UUIDField(read_only=True)
    state = serializers.SerializerMethodField()
    last_known_state = serializers.CharField(
        source="state", read_only=True, help_text="Of one that is gone: as it was when its root or node was retired."
    )
    path = serializers.SerializerMethodField()
    host_path = serializers.SerializerMethodField()
    damaged = serializers.ListField(child=serializers.CharField(), read_only=True)

    class Meta:
        model = Artifact
        fields = [
            "id",
            "state",
            "last_known_state",
            "node_id",
            "node",
            "root_id",
            "repo_id",
            "revision",
            "commit",
            "selection",
            "snapshot",
            "path",
            "host_path",
            "files",
            "bytes",
            "manifest_sha256",
            "damaged",
            "published_at",
            "verified_at",
            "removed_at",
        ]
        read_only_fields = fields

    @extend_schema_field(serializers.ChoiceField(choices=standing.STATES))
    def get_state(self, artifact: Artifact) -> str:
        """What is known of its bytes; gone: its root or node was retired, and nobody watches it."""
        return standing.of(artifact)

    def get_path(self, artifact: Artifact) -> str:
        """Where it lies in its agent's environment."""
        return below(artifact.root.container_path, artifact.snapshot)

    def get_host_path(self, artifact: Artifact) -> str:
        """Where it lies on the server, by what its operator said of the root."""
        return below(artifact.root.host_path, artifact.snapshot)


def below(root: str, snapshot: str) -> str:
    """A path below a root's."""
    return f"{root.rstrip('/')}/{snapshot}"
