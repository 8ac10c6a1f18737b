"""The base stack: up from nothing by one command, behind one port, in TLS that a private CA vouches for."""

import base64
import hashlib
import http.client
import json
import re
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from tests.deploy import engine
from tests.deploy.parts import NAME, OPERATOR, PASSWORD, Stack
from tests.deploy.server import image_labels
from tests.parts.chromium import FLAGS

LASTING = ("postgres", "redis", "web", "worker", "beat", "proxy")
ONCE = ("secrets", "migrate")


def test_everything_is_healthy_and_ready(stack: Stack) -> None:
    for service in LASTING:
        state = stack.server.state(service)["State"]
        assert state["Status"] == "running", service
        assert state.get("Health", {"Status": "healthy"})["Status"] == "healthy", service
    for service in ONCE:
        assert stack.server.state(service)["State"]["ExitCode"] == 0, service
    told = stack.site.ready()
    assert told is not None
    assert told["ready"]
    assert all(check["ok"] for check in told["checks"].values())


def test_only_the_proxy_has_a_port(stack: Stack) -> None:
    published = {
        service: {
            port: places for port, places in stack.server.state(service)["NetworkSettings"]["Ports"].items() if places
        }
        for service in LASTING
    }
    assert {service for service, ports in published.items() if ports} == {"proxy"}
    assert list(published["proxy"]) == ["443/tcp"]


def test_what_holds_data_cannot_reach_out(stack: Stack) -> None:
    for network in ("back", "middle"):
        found = json.loads(engine.docker("network", "inspect", f"{stack.server.project}_{network}"))
        assert found[0]["Internal"] is True
    assert [*stack.server.state("postgres")["NetworkSettings"]["Networks"]] == [f"{stack.server.project}_back"]


@pytest.mark.parametrize("service", LASTING)
def test_every_service_is_guarded(stack: Stack, service: str) -> None:
    found = stack.server.state(service)
    host = found["HostConfig"]
    assert host["ReadonlyRootfs"] is True
    assert host["CapDrop"] == ["ALL"]
    assert "no-new-privileges:true" in host["SecurityOpt"]
    assert host["RestartPolicy"]["Name"] == "unless-stopped"
    assert host["LogConfig"]["Config"] == {"max-size": "10m", "max-file": "3"}
    assert host["Memory"] > 0
    assert host["PidsLimit"] > 0
    assert not host["Privileged"]
    assert not [mount for mount in found["Mounts"] if "docker.sock" in str(mount.get("Source"))]


@pytest.mark.parametrize("service", ["web", "worker", "beat"])
def test_the_control_plane_is_nobody_special(stack: Stack, service: str) -> None:
    (container,) = stack.server.containers(service)
    assert engine.inspect(container)["HostConfig"]["Init"] is True
    status = engine.docker("exec", container, "cat", "/proc/1/status")
    for line in ("Uid:\t10001\t10001\t10001\t10001", "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000"):
        assert line in status
    assert "NoNewPrivs:\t1" in status
    assert "Seccomp:\t2" in status


def test_no_secret_stands_in_an_environment_or_a_command(stack: Stack) -> None:
    (web,) = stack.server.containers("web")
    folder = "/run/modelforge"
    names = ("database/password", "keys/secret-key", "keys/operator-api-key")
    secrets = [engine.docker("exec", web, "cat", f"{folder}/{name}") for name in names]
    assert all(len(secret) >= 32 for secret in secrets)
    for service in (*LASTING, *ONCE):
        shown = json.dumps(stack.server.state(service))
        assert not [secret for secret in secrets if secret in shown], service
    assert not [secret for secret in secrets if secret in stack.server.logs()]


def test_django_finds_nothing_to_complain_of(stack: Stack) -> None:
    assert "no issues" in stack.manage("check", "--deploy", "--fail-level", "WARNING")


def test_the_images_say_what_they_are_and_carry_no_tools_to_build(stack: Stack) -> None:
    labels = image_labels("modelforge-control-plane")
    assert labels["org.opencontainers.image.title"] == "ModelForge control plane"
    assert labels["org.opencontainers.image.version"]
    (web,) = stack.server.containers("web")
    left = engine.docker(
        "exec", web, "sh", "-c", "command -v gcc cc make; ls -d /*/.cache /home/*/.cache /opt/venv/bin/pip; true"
    )
    assert left == ""


def test_openssl_sees_the_chain_of_the_private_ca(stack: Stack) -> None:
    good = s_client(stack, "-CAfile", str(stack.site.ca), "-verify_return_error")
    assert "Verify return code: 0 (ok)" in good
    assert "CN = Caddy Local Authority - ECC Intermediate" in good or "CN=Caddy Local Authority" in good
    assert "Verify return code: 0" not in s_client(stack, "-no-CAfile", "-no-CApath")


def test_old_tls_is_not_spoken(stack: Stack) -> None:
    context = ssl.create_default_context(cafile=str(stack.site.ca))
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    assert "TLSv1.3" in s_client(stack, "-CAfile", str(stack.site.ca))
    refused = s_client(stack, "-CAfile", str(stack.site.ca), "-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0")
    assert "Cipher is (NONE)" in refused


def test_plain_http_is_told_off(stack: Stack) -> None:
    """Nothing listens for it; on the TLS port a proxy's refusal comes, and never a redirect that eats a POST."""
    connection = http.client.HTTPConnection("127.0.0.1", stack.site.port, timeout=10)
    connection.request("GET", "/api/v1/")
    assert connection.getresponse().status == 400
    connection.close()


def test_the_operator_logs_in_by_a_real_browser(stack: Stack, tmp_path: Path) -> None:
    stack.manage("create_operator", OPERATOR, "--password-file", "-", stdin=PASSWORD)
    # The browser believes this one key beside its own list, as if the CA stood there; everything else stays checked.
    flags = [*FLAGS, f"--host-resolver-rules=MAP {NAME} 127.0.0.1"]
    flags.append(f"--ignore-certificate-errors-spki-list={key_of_the_intermediate(stack)}")
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            str(tmp_path / "profile"), executable_path=shutil.which("chromium"), args=flags, headless=True
        )
        page = context.pages[0]
        troubles: list[str] = []
        page.on("console", lambda said: troubles.append(said.text) if said.type == "error" else None)
        page.on("response", lambda answer: troubles.append(answer.url) if answer.status >= 400 else None)
        page.goto(f"{stack.site.url}/admin/login/")
        page.fill("#id_username", OPERATOR)
        page.fill("#id_password", PASSWORD)
        page.click("#login-form button[type=submit]")
        page.wait_for_url("**/admin/")
        cookies = {cookie["name"]: cookie for cookie in context.cookies()}
        page.goto(f"{stack.site.url}/admin/nodes/node/")
        assert page.title()
        context.close()
    assert cookies["sessionid"]["secure"]
    assert troubles == []


def s_client(stack: Stack, *arguments: str) -> str:
    """What openssl says of the TLS at the door."""
    command = ["openssl", "s_client", "-connect", f"127.0.0.1:{stack.site.port}", "-servername", NAME]
    done = subprocess.run(
        [*command, "-showcerts", *arguments], input="", capture_output=True, text=True, timeout=20, check=False
    )
    return done.stdout + done.stderr


def key_of_the_intermediate(stack: Stack) -> str:
    """The digest of the intermediate's public key, as Chromium names it."""
    shown = s_client(stack, "-CAfile", str(stack.site.ca))
    certificates = re.findall(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", shown, re.DOTALL)
    pem = subprocess.run(
        ["openssl", "x509", "-pubkey", "-noout"], input=certificates[1], capture_output=True, text=True, check=True
    ).stdout
    der = base64.b64decode("".join(pem.strip().splitlines()[1:-1]))
    return base64.b64encode(hashlib.sha256(der).digest()).decode()
