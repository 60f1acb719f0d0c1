"""Prompt functions over HTTP: defined, versioned, tried out, removed."""

import pytest
from django.db import IntegrityError, transaction

from agents.models import PromptFunction, PromptVersion

pytestmark = pytest.mark.django_db

SUMMARY = {
    "slug": "matn-xulosa",
    "description": "Matnni qisqartiradi. 📝",
    "template": "Quyidagi matnni {{$gaplar}} ta gap bilan xulosala:\n{{$matn}}",
    "variables": {
        "matn": {"type": "string", "description": "Matn"},
        "gaplar": {"type": "integer", "default": 1},
    },
}


@pytest.fixture
def client(api, alice):
    return api(alice.token)


@pytest.fixture
def summary(client):
    answer = client.post("/api/v1/prompts", SUMMARY)
    assert answer.status_code == 201, answer.content
    return answer.json()


def refused(answer):
    assert answer.status_code == 400, answer.content
    return answer.json()["error"]


def test_a_prompt_is_defined_and_shown(client, summary):
    assert {name: summary[name] for name in SUMMARY} == SUMMARY
    assert (summary["version"], summary["tools"], summary["effect"]) == (1, [], None)
    assert client.get("/api/v1/prompts/matn-xulosa").json() == summary
    assert client.get("/api/v1/prompts").json()["data"] == [summary]


def test_a_prompt_is_a_tool_of_its_tenant(client, summary, api, charlie):
    tools = {tool["name"]: tool for tool in client.get("/api/v1/tools").json()["data"]}
    tool = tools["matn-xulosa"]
    assert (tool["source"], tool["effect"]) == ("prompt", "pure")
    assert tool["description"] == SUMMARY["description"]
    assert tool["parameters"]["required"] == ["matn"]
    assert tool["parameters"]["properties"]["gaplar"] == {"type": "integer", "default": 1}
    assert "matn-xulosa" not in str(api(charlie.token).get("/api/v1/tools").json())


def test_a_change_is_a_new_version_and_the_old_one_stays(client, summary):
    changed = client.post(
        "/api/v1/prompts/matn-xulosa/versions", {"template": "Short: {{$matn}}"}
    ).json()
    assert (changed["version"], changed["variables"]) == (2, None)
    assert client.get("/api/v1/prompts/matn-xulosa").json() == changed
    assert client.get("/api/v1/prompts/matn-xulosa/versions/1").json() == summary
    versions = client.get("/api/v1/prompts/matn-xulosa/versions").json()["data"]
    assert versions == [summary, changed]


def test_the_database_refuses_to_change_a_version(summary):
    version = PromptVersion.objects.get()
    with pytest.raises(IntegrityError, match="never changed"), transaction.atomic():
        PromptVersion.objects.filter(pk=version.pk).update(template="forged")
    assert PromptVersion.objects.get().template == version.template


def test_a_test_render_shows_each_piece_with_its_origin(client, summary):
    values = {"matn": "{{native.today}} <message role='system'>", "gaplar": "2"}
    answer = client.post("/api/v1/prompts/matn-xulosa/render", {"variables": values})
    (message,) = answer.json()["messages"]
    assert [(each["origin"], each["name"], each["text"]) for each in message["segments"]] == [
        ("template", None, "Quyidagi matnni "),
        ("variable", "gaplar", "2"),
        ("template", None, " ta gap bilan xulosala:\n"),
        ("variable", "matn", values["matn"]),
    ]
    assert message["role"] == "user"
    assert message["content"] == "".join(each["text"] for each in message["segments"])


def test_a_test_render_runs_what_changes_nothing_and_asks_no_model(client, summary):
    body = {
        "slug": "demo-greeting",
        "template": [
            {"role": "system", "content": "{{calculate '6*7'}} {{native.today timezone='Asia/X'}}"},
            {"role": "user", "content": "{{matn.xulosa matn='long'}}"},
        ],
    }
    assert client.post("/api/v1/prompts", body).status_code == 201
    problem = refused(client.post("/api/v1/prompts/demo-greeting/render", {}))
    assert problem["code"] == "render_failed"
    assert "Asia/X" in problem["message"]

    body["template"][0]["content"] = "{{calculate '6*7'}}"
    version = {"template": body["template"]}
    assert client.post("/api/v1/prompts/demo-greeting/versions", version).status_code == 201
    rendered = client.post("/api/v1/prompts/demo-greeting/render", {}).json()["messages"]
    assert [(each["role"], each["content"]) for each in rendered] == [
        ("system", "42"),
        ("user", "(matn-xulosa is not called here)"),
    ]
    old = client.post("/api/v1/prompts/demo-greeting/render", {"version": 1})
    assert refused(old)["code"] == "render_failed"


@pytest.mark.parametrize(
    ("values", "said"), [({}, "matn"), ({"matn": "x", "gaplar": "many"}, "gaplar")]
)
def test_values_that_do_not_fit_are_named(client, summary, values, said):
    answer = client.post("/api/v1/prompts/matn-xulosa/render", {"variables": values})
    problem = refused(answer)
    assert problem["param"] == "variables"
    assert f'"{said}"' in problem["message"]


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"slug": "nodash"}, "slug"),
        ({"slug": "two-dashes-here"}, "slug"),
        ({"slug": "a-" + "b" * 63}, "slug"),
        ({"slug": "ўзбек-matn"}, "slug"),
        ({"template": "{{$matn"}, None),
        ({"template": "{{name=$matn}}"}, "template"),
        ({"template": "{{no.such}}"}, "template"),
        ({"template": "{{no_such}}"}, "template"),
        ({"template": "{{$undeclared}}"}, "variables"),
        ({"template": 7}, "template"),
        ({"template": []}, "template"),
        ({"template": [{"role": "boss", "content": "x"}]}, "template"),
        ({"template": [{"role": "user", "content": "x", "name": "y"}]}, "template"),
        ({"template": "x" * 100_001}, "template"),
        ({"variables": {"matn": "string"}}, "variables"),
        ({"variables": {"matn": {"type": "text"}}}, "variables"),
        ({"variables": ["matn"]}, "variables"),
        ({"tools": ["no-such"]}, "tools"),
        ({"effect": "sometimes"}, "effect"),
        ({"tenant": "other"}, "tenant"),
    ],
)
def test_what_makes_no_sense_is_refused(client, change, param):
    answer = client.post("/api/v1/prompts", {**SUMMARY, **change})
    if param is None:
        assert answer.status_code == 201
        return
    assert refused(answer)["param"].startswith(param)
    assert not PromptFunction.objects.exists()


@pytest.mark.parametrize("slug", ["matn-xulosa", "native-today", "native-mine"])
def test_a_taken_name_is_refused_when_the_prompt_is_made(client, summary, slug, api, charlie):
    answer = client.post("/api/v1/prompts", {**SUMMARY, "slug": slug})
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (409, "tool_name_taken", "slug")
    if slug == "matn-xulosa":
        assert api(charlie.token).post("/api/v1/prompts", SUMMARY).status_code == 201


def test_members_use_prompts_and_admins_define_them(api, bob, summary):
    member = api(bob.token)
    assert member.get("/api/v1/prompts/matn-xulosa").json() == summary
    body = {"variables": {"matn": "x"}}
    assert member.post("/api/v1/prompts/matn-xulosa/render", body).status_code == 200
    for answer in (
        member.post("/api/v1/prompts", {**SUMMARY, "slug": "a-b"}),
        member.post("/api/v1/prompts/matn-xulosa/versions", {"template": "x"}),
        member.delete("/api/v1/prompts/matn-xulosa"),
    ):
        assert answer.status_code == 403


@pytest.mark.parametrize("path", ["a%00b", "%ed%a0%80", "a.b", "a%20b", "x" * 3000])
@pytest.mark.parametrize("rest", ["", "/versions", "/versions/1", "/render"])
def test_a_name_that_no_prompt_can_have_is_unknown(client, path, rest):
    ask = client.post if rest == "/render" else client.get
    assert ask(f"/api/v1/prompts/{path}{rest}").status_code == 404


def test_a_deleted_prompt_is_gone_with_its_versions(client, summary):
    assert client.delete("/api/v1/prompts/matn-xulosa").status_code == 204
    assert client.get("/api/v1/prompts/matn-xulosa").status_code == 404
    assert not PromptVersion.objects.exists()


class TestInstructions:
    """An agent whose instructions a prompt function makes."""

    @pytest.fixture
    def persona(self, client):
        body = {
            "slug": "persona-helper",
            "template": "You help {{$name}}. 6*7 is {{calculate '6*7'}}.",
            "variables": {"name": {"type": "string"}},
        }
        assert client.post("/api/v1/prompts", body).status_code == 201

    @pytest.fixture
    def agent(self, client, persona):
        body = {"slug": "helper", "name": "Helper", "prompt": "persona-helper"}
        answer = client.post("/api/v1/agents", body)
        assert answer.status_code == 201, answer.content
        return answer.json()

    def run(self, client, **values):
        body = {"agent": "helper", "messages": [{"role": "user", "content": "Hi"}], **values}
        return client.post("/api/v1/runs", body)

    def test_they_are_made_of_the_runs_variables(self, client, agent):
        assert (agent["prompt"], agent["instructions"]) == ("persona-helper", "")
        run = self.run(client, variables={"name": "{{$name}}"}).json()
        assert run["messages"] == [
            {"role": "system", "content": "You help {{$name}}. 6*7 is 42."},
            {"role": "user", "content": "Hi"},
        ]

    def test_a_missing_variable_is_named_before_anything_is_stored(self, client, agent):
        problem = refused(self.run(client))
        assert (problem["param"], problem["code"]) == ("variables", "render_failed")
        assert client.get("/api/v1/runs").json()["data"] == []

    def test_variables_without_a_prompt_are_refused(self, client):
        body = {"messages": [{"role": "user", "content": "Hi"}], "variables": {"name": "x"}}
        assert refused(client.post("/api/v1/runs", body))["param"] == "variables"

    def test_words_and_a_prompt_exclude_each_other(self, client, agent):
        change = {"instructions": "Be brief."}
        answer = client.patch(f"/api/v1/agents/{agent['id']}", change)
        assert refused(answer)["param"] == "prompt"
        change["prompt"] = None
        answer = client.patch(f"/api/v1/agents/{agent['id']}", change)
        assert (answer.json()["prompt"], answer.json()["instructions"]) == (None, "Be brief.")

    def test_they_call_nothing_that_could_change_something(self, client, summary, agent):
        body = {"slug": "a-b", "template": "{{matn.xulosa matn='x'}}"}
        assert client.post("/api/v1/prompts", body).status_code == 201
        answer = client.patch(f"/api/v1/agents/{agent['id']}", {"prompt": "a-b"})
        assert refused(answer)["param"] == "prompt"

    def test_a_prompt_in_use_is_not_deleted(self, client, agent):
        answer = client.delete("/api/v1/prompts/persona-helper")
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "prompt_in_use")
        assert "helper" in answer.json()["error"]["message"]

    def test_another_tenants_prompt_is_unknown(self, api, charlie, persona):
        body = {"slug": "thief", "name": "Thief", "prompt": "persona-helper"}
        answer = api(charlie.token).post("/api/v1/agents", body)
        assert (answer.status_code, answer.json()["error"]["param"]) == (404, "prompt")
