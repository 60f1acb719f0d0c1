"""Prompt functions as tools of runs: calls of the run's own scope, under its trace."""

import pytest

from agents.services.prompts import PromptText, add_version, create_prompt
from agents.tool_sources.catalog import tools_of, tools_of_run
from tests.support.model_server import Reply, ask, say

pytestmark = pytest.mark.django_db


@pytest.fixture
def define(alice):
    def define(slug, template, **values):
        return create_prompt(
            tenant=alice.tenant,
            slug=slug,
            text=PromptText(template=template, **values),
            available=tools_of(alice.tenant),
            created_by=alice.user,
        )

    return define


@pytest.fixture
def complete(alice, start, advance):
    """``complete(run)`` as a worker does it, with all that alice's tenant has."""

    def complete(*tools):
        run = start("Summarise.", available=tools_of(alice.tenant), tools=list(tools))
        return work(run)

    def work(run):
        return advance(run, tools_of=tools_of_run)

    complete.work = work
    return complete


def test_a_prompt_function_is_a_call_of_its_own_under_the_runs_trace(
    define, complete, model, broker, alice
):
    define("matn-xulosa", "Short, please: {{$matn}}")
    model.script(
        ask(("matn-xulosa", {"matn": "{{native.today}} 🌤"})), say("shortened"), say("Done.")
    )
    run = complete("matn-xulosa")
    assert (run.status, run.output_text) == ("completed", "Done.")
    asked = model.requests[1].body
    assert asked["messages"] == [{"role": "user", "content": "Short, please: {{native.today}} 🌤"}]
    assert "tools" not in asked
    step = run.steps.get(kind="tool_call")
    assert (step.result, step.outcome) == ("shortened", "success")
    calls = broker.for_scope(str(alice.scope.id)).calls(limit=10)
    assert {call.trace_id for call in calls} == {run.trace_id}
    assert [call.operation for call in calls].count("matn.xulosa") == 1
    assert len(calls) == 3


def test_a_template_calls_native_functions_and_other_prompts(define, complete, model):
    define("matn-xulosa", "Short: {{$matn}}")
    define("salom-ber", "{{calculate '6*7'}} and {{matn.xulosa matn=$nima}}")
    model.script(ask(("salom-ber", {"nima": "long"})), say("inner"), say("outer"), say("The end."))
    assert complete("salom-ber").output_text == "The end."
    assert model.requests[1].messages[-1]["content"] == "Short: long"
    assert model.requests[2].messages[-1]["content"] == "42 and inner"


def test_a_prompt_can_have_tools_of_its_own(define, complete, model):
    define("hisob-chi", "Work out {{$nima}}", tools=["calculate"])
    model.script(
        ask(("hisob-chi", {"nima": "6*7"})),
        ask(("native-calculate", {"expression": "6*7"})),
        say("It is 42."),
        say("42"),
    )
    run = complete("hisob-chi")
    assert run.steps.get(kind="tool_call").result == "It is 42."
    assert model.requests[2].messages[-1]["content"] == "42"


def test_what_the_model_leaves_out_or_gets_wrong_goes_back_to_it(define, complete, model):
    define("matn-xulosa", "{{$n}}", variables={"n": {"type": "integer"}})
    model.script(ask(("matn-xulosa", {"n": "many"})), say("Sorry."))
    step = complete("matn-xulosa").steps.get(kind="tool_call")
    assert step.outcome == "invalid_arguments"
    assert '"n"' in step.result


def test_a_run_keeps_the_version_that_it_was_created_with(define, complete, start, model, alice):
    version = define("matn-xulosa", "Old: {{$matn}}")
    run = start("?", available=tools_of(alice.tenant), tools=["matn-xulosa"])
    text = PromptText(template="New: {{$matn}}")
    add_version(prompt=version.prompt, text=text, available=tools_of(alice.tenant))
    script = ask(("matn-xulosa", {"matn": "x"})), say("a"), say("b")
    model.script(*script)
    complete.work(run)
    assert model.requests[1].messages[-1]["content"] == "Old: x"
    model.script(*script)
    complete("matn-xulosa")
    assert model.requests[4].messages[-1]["content"] == "New: x"


def test_prompts_that_call_each_other_for_ever_are_stopped(define, complete, model, alice):
    first = define("a-a", "x")
    define("b-b", "{{a.a}}")
    text = PromptText(template="{{b.b}}")
    add_version(prompt=first.prompt, text=text, available=tools_of(alice.tenant))
    model.script(ask(("a-a", {})), say("I see."))
    step = complete("a-a").steps.get(kind="tool_call")
    assert (step.outcome, "deep" in step.result) == ("failed", True)


def test_a_prompt_that_was_deleted_is_an_unknown_tool(define, complete, model, start, alice):
    version = define("matn-xulosa", "x")
    run = start("?", available=tools_of(alice.tenant), tools=["matn-xulosa", "today"])
    version.prompt.delete()
    model.script(ask(("matn-xulosa", {})), say("Then not."))
    run = complete.work(run)
    assert run.steps.get(kind="tool_call").outcome == "unknown_tool"


def test_a_failing_model_inside_is_the_tools_failure(define, complete, model):
    define("matn-xulosa", "x")
    refusal = Reply(400, b'{"error": {"message": "no such parameter"}}')
    model.script(ask(("matn-xulosa", {})), refusal, say("Sorry."))
    run = complete("matn-xulosa")
    assert run.steps.get(kind="tool_call").outcome == "failed"
    assert (run.status, run.output_text) == ("completed", "Sorry.")
