"""The groups Operators and Auditors: both may see; what operators may do, the acts themselves check."""

from django.contrib.auth.management import create_permissions
from django.db import migrations

SEEN = {
    "nodes": ["node", "heartbeat", "bootsession", "accelerator", "volume", "telemetrysample", "auditevent"],
    "enrollment": ["enrollmenttoken", "nodecredential", "apikey"],
}


def forwards(apps, schema_editor):
    Group, Permission = apps.get_model("auth", "Group"), apps.get_model("auth", "Permission")
    for label in SEEN:  # permissions come after the last migration otherwise
        config = apps.get_app_config(label)
        config.models_module = True
        create_permissions(config, apps=apps, verbosity=0, using=schema_editor.connection.alias)
        config.models_module = None
    views = [
        permission
        for label, models in SEEN.items()
        for permission in Permission.objects.filter(
            content_type__app_label=label, codename__in=[f"view_{model}" for model in models]
        )
    ]
    for name in ("Operators", "Auditors"):
        Group.objects.get_or_create(name=name)[0].permissions.add(*views)


def backwards(apps, schema_editor):
    apps.get_model("auth", "Group").objects.filter(name__in=["Operators", "Auditors"]).delete()


class Migration(migrations.Migration):
    dependencies = [
        ("enrollment", "0001_initial"),
        ("nodes", "0001_initial"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]
    operations = [migrations.RunPython(forwards, backwards, elidable=False)]
