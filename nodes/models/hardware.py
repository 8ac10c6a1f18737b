"""What is in a node, and what it measured: accelerators, volumes, samples."""

from django.db import models

from nodes.models.nodes import Node


class Accelerator(models.Model):
    """A GPU or MIG instance that was seen in a node; one that vanished stays, missing."""

    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="accelerators")
    key = models.CharField(max_length=128)  # wire.AcceleratorFacts.key
    identity = models.CharField(max_length=16)  # "uuid", "pci_bus_id" or "index"
    kind = models.CharField(max_length=8)  # "gpu" or "mig"
    parent = models.CharField(max_length=128, blank=True)
    index = models.PositiveBigIntegerField()
    uuid = models.CharField(max_length=255, blank=True)
    model = models.CharField(max_length=255, blank=True)
    pci_bus_id = models.CharField(max_length=255, blank=True)
    memory_bytes = models.BigIntegerField(null=True)  # None: the reason stands in ``facts``
    memory_model = models.CharField(max_length=16)
    driver_version = models.CharField(max_length=255, blank=True)
    facts = models.JSONField()  # wire.AcceleratorFacts as JSON: each a value or a reason
    first_seen_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()
    missing_since = models.DateTimeField(null=True)

    class Meta:
        ordering = ["index", "key"]
        constraints = [models.UniqueConstraint(fields=["node", "key"], name="an_accelerator_is_known_once_per_node")]

    def __str__(self) -> str:
        return self.model or self.key


class Volume(models.Model):
    """One of the named data volumes of a node, as its agent last described it."""

    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="volumes")
    name = models.CharField(max_length=255)
    path = models.CharField(max_length=4096)
    filesystem = models.CharField(max_length=255, blank=True)
    total_bytes = models.BigIntegerField(null=True)
    free_bytes = models.BigIntegerField(null=True)
    facts = models.JSONField()  # wire.VolumeFacts as JSON
    seen_at = models.DateTimeField()

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["node", "name"], name="a_volume_is_known_once_per_node")]

    def __str__(self) -> str:
        return self.name


class TelemetrySample(models.Model):
    """What one node measured at one instant; raw for a day, thinned for a month, then gone."""

    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="samples")
    at = models.DateTimeField()  # by the control plane's clock
    thinned = models.BooleanField(default=False)  # stands for the samples around it
    data = models.JSONField()  # wire.Telemetry as JSON

    class Meta:
        ordering = ["-at"]
        indexes = [
            models.Index(fields=["node", "-at"], name="samples_of_a_node_by_time"),
            models.Index(fields=["thinned", "at"], name="samples_by_age"),  # what to thin out, what to drop
        ]

    def __str__(self) -> str:
        return f"{self.node_id} {self.at:%Y-%m-%d %H:%M:%S}"
