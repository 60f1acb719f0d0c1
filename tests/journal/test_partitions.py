"""The journal's tables as PostgreSQL holds them."""

from uuid import uuid4

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.migrations.loader import MigrationLoader

from journal.models import Call, Rating
from journal.partitioning import PartitionByHash
from journal.selectors import calls_of_scope, narrowed, with_score

pytestmark = pytest.mark.django_db

NAMES = {f"journal_call_p{number:02}" for number in range(16)}


def ask(sql, *params):
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return cursor.fetchall()


def execute(sql):
    with connection.cursor() as cursor:
        cursor.execute(sql)


def primary_key():
    return ask(
        "SELECT pg_get_constraintdef(oid) FROM pg_constraint"
        " WHERE conrelid = 'journal_call'::regclass AND contype = 'p'"
    )


def kind_of_table():
    ((kind,),) = ask("SELECT relkind FROM pg_class WHERE oid = 'journal_call'::regclass")
    return kind


def test_all_sixteen_partitions_are_there():
    found = ask(
        "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent=%s::regclass",
        "journal_call",
    )
    assert {name for (name,) in found} == NAMES


def test_the_primary_key_names_the_scope_too():
    assert primary_key() == [("PRIMARY KEY (id, scope_id)",)]


def test_every_index_of_the_model_stands_on_every_partition():
    wanted = {index.name for index in Call._meta.indexes} | {"journal_call_pkey"}
    found = ask(
        "SELECT parent.relname, count(*) FROM pg_inherits"
        " JOIN pg_class parent ON parent.oid = inhparent AND parent.relkind = 'I'"
        " JOIN pg_index ON indexrelid = parent.oid AND indrelid = 'journal_call'::regclass"
        " GROUP BY 1"
    )
    assert dict(found) == dict.fromkeys(wanted, len(NAMES))


@pytest.mark.parametrize(
    ("index", "filters"),
    [
        ("scope_id_id_idx", {}),
        ("scope_id_operation_id_idx", {"operation": "chat"}),
        ("scope_id_trace_id_id_idx", {"trace_id": "t"}),
    ],
)
def test_a_scopes_page_reads_one_index_of_one_partition(index, filters):
    execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off")
    page = narrowed(with_score(calls_of_scope(uuid4())), **filters).order_by("-id")[:50]
    plan = page.explain()
    assert plan.count("on journal_call_p") == 1
    assert f"_{index} on" in plan
    assert "Sort" not in plan.split("SubPlan")[0]


def test_partitioning_keeps_rows_in_both_directions(alice, charlie, journaled):
    with connection.as_owner():
        partition_back_and_forth(alice, charlie, journaled)


def partition_back_and_forth(alice, charlie, journaled):
    calls = {journaled(alice).id, journaled(charlie).id}
    execute("ALTER TABLE journal_rating DROP CONSTRAINT rating_of_call_in_scope")
    operation = PartitionByHash("Call", column="scope_id", partitions=16)
    state = MigrationLoader(connection).project_state()

    with connection.schema_editor(atomic=False) as editor:
        operation.database_backwards("journal", editor, state, state)
    assert (kind_of_table(), primary_key()) == ("r", [("PRIMARY KEY (id)",)])
    assert set(Call.objects.values_list("id", flat=True)) == calls

    for index in Call._meta.indexes:
        execute(f'DROP INDEX "{index.name}"')
    with connection.schema_editor(atomic=False) as editor:
        operation.database_forwards("journal", editor, state, state)
    assert (kind_of_table(), primary_key()) == ("p", [("PRIMARY KEY (id, scope_id)",)])
    assert set(Call.objects.values_list("id", flat=True)) == calls


@pytest.mark.parametrize("status", ["ok", "error", "unknown"])
def test_the_database_refuses_to_change_a_closed_call(alice, journaled, status):
    call = journaled(alice, status=status)
    with pytest.raises(IntegrityError, match="never changed"), transaction.atomic():
        Call.objects.filter(id=call.id).update(latency_ms=1)


def test_the_database_refuses_a_rating_from_another_scope(alice, charlie, journaled):
    call = journaled(alice)
    with pytest.raises(IntegrityError, match="rating_of_call_in_scope"), transaction.atomic():
        Rating.objects.create(
            call=call, scope_id=charlie.scope.id, tenant_id=charlie.scope.tenant_id, score=0.0
        )


@pytest.mark.parametrize("score", [-0.1, 1.1, float("nan"), float("inf")])
def test_the_database_refuses_a_score_that_is_none(alice, journaled, score):
    call = journaled(alice)
    with pytest.raises(IntegrityError, match="rating_score_range"), transaction.atomic():
        Rating.objects.create(
            call=call, scope_id=call.scope_id, tenant_id=call.tenant_id, score=score
        )


def test_ratings_go_when_their_call_goes(alice, journaled):
    call = journaled(alice)
    Rating.objects.create(call=call, scope_id=call.scope_id, tenant_id=call.tenant_id, score=1.0)
    calls_of_scope(alice.scope.id).delete()
    assert not Rating.objects.exists()
