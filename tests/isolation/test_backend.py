"""The stamp: set once per transaction, gone with it, right in threads, loops and streams."""

import asyncio
import threading

import pytest
from asgiref.sync import sync_to_async
from django.db import ProgrammingError, connection, transaction
from django.http import StreamingHttpResponse
from django.test import RequestFactory

from tenants.context import (
    APPLICATION,
    Lookup,
    Reach,
    ScopeRequired,
    abound,
    all_tenants,
    bound,
    enter,
    scope_active,
)
from tenants.database import in_thread
from tenants.middleware import Walls
from tenants.models import AccessToken, ProviderKey, Scope, Tenant
from tests.support.belongings import belongings_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def acme_reach(alice):
    belongings_of(alice)
    return Reach(alice.tenant.pk, alice.scope.pk)


@pytest.fixture
def globex_reach(charlie):
    belongings_of(charlie)
    return Reach(charlie.tenant.pk, charlie.scope.pk)


def tenants_seen():
    """By raw SQL, which no manager bounds."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT DISTINCT tenant_id FROM tenants_providerkey")
        return {tenant for (tenant,) in cursor.fetchall()}


def seen_then_closed():
    """For a thread that stays: it must not keep its connection."""
    try:
        return tenants_seen()
    finally:
        connection.close()


def test_outside_of_a_scope_the_manager_refuses_and_the_database_shows_nothing(acme_reach):
    everything = ProviderKey.objects.all()
    with scope_active(None):
        with pytest.raises(ScopeRequired):
            list(everything)
        with pytest.raises(ScopeRequired):
            everything.update(label="x")
        with pytest.raises(ScopeRequired):
            everything.count()
        assert list(ProviderKey._base_manager.all()) == []
        assert tenants_seen() == set()
        with pytest.raises(ProgrammingError, match="row-level security"):
            Tenant.objects.create(slug="new", name="new")


def test_within_a_scope_raw_sql_and_base_managers_see_that_tenant_only(acme_reach, globex_reach):
    for reach in (acme_reach, globex_reach, acme_reach):
        with scope_active(reach):
            assert tenants_seen() == {reach.tenant_id}
            assert {key.tenant_id for key in ProviderKey._base_manager.all()} == {reach.tenant_id}
            assert {key.tenant_id for key in ProviderKey.objects.all()} == {reach.tenant_id}


def test_a_row_of_another_tenant_can_be_neither_written_nor_moved(acme_reach, globex_reach):
    with scope_active(globex_reach):
        mine = ProviderKey.objects.filter(scope_id=globex_reach.scope_id).get()
        theirs = ProviderKey._base_manager.filter(tenant_id=acme_reach.tenant_id)
        assert theirs.update(label="mine") == theirs.delete()[0] == 0
        with pytest.raises(ProgrammingError, match="row-level security"):
            ProviderKey._base_manager.filter(pk=mine.pk).update(tenant_id=acme_reach.tenant_id)


def test_a_scope_reads_the_shared_keys_and_writes_its_own_only(acme_reach):
    with scope_active(acme_reach):
        own, shared = ProviderKey.objects.order_by("pk")
        assert own.scope_id == acme_reach.scope_id != shared.scope_id
        rows = ProviderKey._base_manager
        assert rows.filter(pk=shared.pk).update(label="x") == 0
        assert rows.filter(pk=own.pk).update(label="x") == 1


def test_a_look_up_shows_the_one_row_named_and_no_other(acme_reach, globex_reach):
    token = AccessToken.objects.filter(tenant_id=acme_reach.tenant_id).first()
    with scope_active(Lookup(f"token:{token.token_id}")):
        assert list(AccessToken.unscoped.all()) == [token]
        assert not AccessToken.unscoped.update(name="x")
        assert list(ProviderKey._base_manager.all()) == []
        with pytest.raises(ScopeRequired):
            AccessToken.objects.first()
    with scope_active(Lookup(f"scope:{acme_reach.scope_id}")):
        assert [scope.pk for scope in Scope.unscoped.all()] == [acme_reach.scope_id]
        assert [tenant.pk for tenant in Tenant.unscoped.all()] == [acme_reach.tenant_id]


def test_within_one_transaction_the_stamp_follows_the_scope(acme_reach, globex_reach):
    with transaction.atomic():
        for reach in (acme_reach, globex_reach):
            with scope_active(reach):
                assert tenants_seen() == {reach.tenant_id}
        with scope_active(None):
            assert tenants_seen() == set()
        assert len(tenants_seen()) == 2  # the test is the operator's


def rolled_back(reach):
    """A savepoint in which another scope's rows were read, taken back."""
    savepoint = transaction.savepoint()
    with scope_active(reach):
        assert tenants_seen() == {reach.tenant_id}
    transaction.savepoint_rollback(savepoint)


def test_after_a_rolled_back_savepoint_the_stamp_is_set_again(acme_reach, globex_reach):
    with scope_active(acme_reach), transaction.atomic():
        tenants_seen()
        rolled_back(globex_reach)
        assert tenants_seen() == {acme_reach.tenant_id}
    with transaction.atomic():
        with scope_active(acme_reach):
            tenants_seen()
            rolled_back(globex_reach)
        with scope_active(None):
            assert tenants_seen() == set()


def test_nothing_stays_on_the_connection_and_no_transaction_stays_open(acme_reach):
    with scope_active(acme_reach):
        tenants_seen()
        assert connection.connection.info.transaction_status.name == "IDLE"
    with scope_active(None), connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('app.tenant_id', true), current_user")
        tenant, role = cursor.fetchone()
    assert (tenant or "", role) == ("", APPLICATION)


def test_a_failed_query_leaves_the_connection_usable(acme_reach):
    with scope_active(acme_reach):
        with pytest.raises(ProgrammingError), connection.cursor() as cursor:
            cursor.execute("SELECT nonsense")
        assert tenants_seen() == {acme_reach.tenant_id}


def test_server_side_iterators_stay_within_their_scope(acme_reach, globex_reach):
    with scope_active(acme_reach):
        found = {key.tenant_id for key in ProviderKey._base_manager.iterator(chunk_size=1)}
    assert found == {acme_reach.tenant_id}


def test_a_thread_starts_outside_and_many_threads_do_not_mix(acme_reach, globex_reach):
    seen = []

    def work(reach):
        try:
            with pytest.raises(ScopeRequired):
                ProviderKey.objects.first()
            for _ in range(20):
                with scope_active(reach):
                    seen.append(tenants_seen() == {reach.tenant_id})
        finally:
            connection.close()

    threads = [
        threading.Thread(target=work, args=[reach])
        for reach in (acme_reach, globex_reach) * 4
    ]  # fmt: skip
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 160
    assert all(seen)


def test_tasks_of_one_loop_keep_their_scopes_apart(acme_reach, globex_reach):
    async def one(reach, run):
        with scope_active(reach):
            await asyncio.sleep(0)
            return await run(tenants_seen) == {reach.tenant_id}

    async def sync_ones():
        found = []
        for reach in (acme_reach, globex_reach):
            with scope_active(reach):
                found.append(await sync_to_async(seen_then_closed)() == {reach.tenant_id})
        return found

    async def both():
        reaches = (acme_reach, globex_reach) * 20
        return await asyncio.gather(*(one(reach, in_thread) for reach in reaches))

    assert all(asyncio.run(both()))
    assert all(asyncio.run(sync_ones()))


def test_a_streamed_body_is_read_within_the_scope_of_its_view(acme_reach):
    def view(_request):
        enter(acme_reach)
        return StreamingHttpResponse(str(len(tenants_seen())) for _ in range(2))

    response = Walls(view)(RequestFactory().get("/"))
    with scope_active(None):
        assert b"".join(response.streaming_content) == b"11"
        with pytest.raises(ScopeRequired):
            ProviderKey.objects.first()


def test_streams_of_both_kinds_keep_their_scope_between_two_pieces(acme_reach, globex_reach):
    def pieces():
        for _ in range(2):
            yield tenants_seen()

    async def apieces():
        for _ in range(2):
            yield await in_thread(tenants_seen)

    async def read():
        return [piece async for piece in abound(acme_reach, apieces())]

    with scope_active(globex_reach):
        assert list(bound(acme_reach, pieces())) == [{acme_reach.tenant_id}] * 2
        assert asyncio.run(read()) == [{acme_reach.tenant_id}] * 2
        assert tenants_seen() == {globex_reach.tenant_id}


def test_the_way_through_is_logged(acme_reach, caplog):
    caplog.set_level("INFO", "tenants.walls")
    with all_tenants("a repair"):
        assert tenants_seen() == {acme_reach.tenant_id}
    assert [record.getMessage() for record in caplog.records] == ["through all walls: a repair"]


def test_within_walls_no_sort_takes_the_place_of_an_indexs_order(alice):
    def sorts():
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_setting('enable_sort'), current_setting('jit')")
            return cursor.fetchone()

    with scope_active(Reach(alice.tenant.pk, alice.scope.pk)):
        assert sorts() == ("off", "off")
    with all_tenants("test", routine=True):
        assert sorts()[0] == "on"
