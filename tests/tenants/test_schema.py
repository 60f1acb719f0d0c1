"""The API description covers this app's routes without a warning, and no answer has a secret."""

import io

from django.core.management import call_command
from drf_spectacular.generators import SchemaGenerator

from tenants.urls import urlpatterns


def schema():
    return SchemaGenerator().get_schema(request=None, public=True)


def test_every_route_is_described(capsys):
    paths = schema()["paths"]
    told = capsys.readouterr().err
    assert "tenants/" not in told
    for pattern in urlpatterns:
        assert "/api/v1/" + str(pattern.pattern).replace("<uuid:", "{").replace(">", "}") in paths


def test_both_ways_to_authenticate_are_named():
    assert {"accessToken", "session"} <= set(schema()["components"]["securitySchemes"])


def test_a_value_goes_in_and_never_comes_out():
    parts = schema()["components"]["schemas"]
    assert parts["KeyInput"]["properties"]["value"]["writeOnly"] is True
    shown = {name for name, part in parts.items() if "value" in part.get("properties", {})}
    assert shown == {"KeyInput", "PatchedKeyChange"}
    assert "sealed" not in str(parts)
    assert "fingerprint" not in str(parts)


def test_the_description_can_be_written_to_a_file():
    out = io.StringIO()
    call_command("spectacular", stdout=out)
    assert "/api/v1/keys" in out.getvalue()
