"""Webhooks: queued with the event, signed, sent again until taken, given up with a notice."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import transaction
from django.test.utils import override_settings
from django.utils import timezone

from agents.models import WebhookDelivery, WebhookEndpoint
from agents.services.cancelling import cancel_run
from agents.services.deliveries import CLAIM, DISABLED_AFTER, WAITS, Report, claim_due, record
from agents.services.webhook_endpoints import create_webhook_endpoint
from agents.tasks import deliver_webhooks
from agents.tool_sources.signing import signed_headers
from agents.webhook_sending import send_all
from tenants.encryption import Secret
from tenants.models import AuditEntry
from tests.support.model_server import say
from tests.support.names import Names
from tests.support.tool_server import tool_server

pytestmark = pytest.mark.django_db

PATH = "/api/v1/webhook_endpoints"
Status = WebhookDelivery.Status


@pytest.fixture
def receiver():
    with tool_server() as server, override_settings(BROKER_ALLOWED_ADDRESSES=["127.0.0.1"]):
        yield server


@pytest.fixture
def client(api, alice):
    return api(alice.token)


@pytest.fixture
def hook(client, receiver):
    answer = client.post(PATH, {"url": receiver.url})
    assert answer.status_code == 201, answer.content
    return answer.json()


def due_now():
    WebhookDelivery.objects.filter(status="pending").update(next_attempt_at=timezone.now())


def test_signatures_are_those_of_standard_webhooks():
    """The vector of the specification's own libraries."""
    headers = signed_headers(
        Secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
        message_id="msg_p5jXN8AQM9LWM0D4loKWxJek",
        body=b'{"test": 2432232314}',
        now=datetime.fromtimestamp(1614265330, UTC),
    )
    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_the_end_of_a_run_is_told_thin_and_signed(hook, receiver, model, start, advance):
    model.script(say("Monday"))
    run = advance(start())
    deliver_webhooks()
    (request,) = receiver.requests
    assert request.is_signed_with(hook["secret"])
    event = run.events.get(type="run.completed")
    told = request.json
    assert told == {
        "id": str(event.pk),
        "type": "run.completed",
        "created_at": told["created_at"],
        "data": {"id": str(run.pk)},
    }
    delivery = WebhookDelivery.objects.get()
    assert request.headers["webhook-id"] == str(delivery.pk)
    assert (delivery.status, delivery.log[0]["status"]) == ("delivered", 200)


def test_what_is_rolled_back_is_not_told(hook, start):
    run = start()
    with transaction.atomic():
        cancel_run(run_id=run.id)
        assert WebhookDelivery.objects.count() == 1
        transaction.set_rollback(True)
    assert not WebhookDelivery.objects.exists()


def test_an_endpoint_hears_only_of_what_it_asked_and_only_of_its_tenant(
    client, hook, charlie, start
):
    client.patch(f"{PATH}/{hook['id']}", {"event_types": ["run.completed"]})
    create_webhook_endpoint(tenant=charlie.tenant, values={"url": "https://hooks.globex.example/"})
    cancel_run(run_id=start().id)
    assert not WebhookDelivery.objects.exists()
    client.patch(f"{PATH}/{hook['id']}", {"event_types": ["run.cancelled"]})
    cancel_run(run_id=start().id)
    assert str(WebhookDelivery.objects.get().endpoint_id) == hook["id"]


def test_a_refused_delivery_is_sent_again_later_with_the_same_id(hook, receiver, start):
    receiver.answer(500, b"no")
    cancel_run(run_id=start().id)
    now = timezone.now()
    deliver_webhooks()
    delivery = WebhookDelivery.objects.get()
    assert (delivery.status, delivery.attempts) == ("pending", 1)
    wait = delivery.next_attempt_at - now
    assert WAITS[0] * 0.8 <= wait <= WAITS[0] * 1.2 + timedelta(seconds=30)
    assert WebhookEndpoint.objects.get().failing_since is not None
    for status in (302, 204):
        receiver.answer(status, b"", Location="http://127.0.0.1:1/")
        due_now()
        deliver_webhooks()
    delivery.refresh_from_db()
    assert delivery.status == "delivered"
    assert [each["status"] for each in delivery.log] == [500, 302, 204]
    assert len({request.headers["webhook-id"] for request in receiver.requests}) == 1
    assert WebhookEndpoint.objects.get().failing_since is None


def test_after_the_last_attempt_it_is_given_up_and_can_be_replayed(client, hook, receiver, start):
    cancel_run(run_id=start().id)
    WebhookDelivery.objects.update(attempts=len(WAITS))
    receiver.answer(500, b"")
    deliver_webhooks()
    path = f"{PATH}/{hook['id']}/deliveries"
    (shown,) = client.get(path).json()["data"]
    assert (shown["status"], shown["type"]) == ("failed", "run.cancelled")
    answer = client.post(f"{path}/{shown['id']}/replay")
    assert (answer.status_code, answer.json()["status"]) == (202, "pending")
    assert client.post(f"{path}/{shown['id']}/replay").status_code == 409
    receiver.answer(200, b"")
    deliver_webhooks()
    assert client.get(path).json()["data"][0]["status"] == "delivered"
    assert len({request.headers["webhook-id"] for request in receiver.requests}) == 1


def test_an_endpoint_that_takes_nothing_for_days_is_switched_off_with_a_notice(
    client, hook, receiver, start
):
    receiver.answer(500, b"")
    WebhookEndpoint.objects.update(failing_since=timezone.now() - DISABLED_AFTER)
    cancel_run(run_id=start().id)
    deliver_webhooks()
    shown = client.get(f"{PATH}/{hook['id']}").json()
    assert not shown["enabled"]
    assert "took nothing for 5 days" in shown["disabled_reason"]
    assert AuditEntry.objects.filter(action="webhook_endpoint.disabled").exists()
    cancel_run(run_id=start().id)
    assert WebhookDelivery.objects.count() == 1
    shown = client.patch(f"{PATH}/{hook['id']}", {"enabled": True}).json()
    assert (shown["disabled_reason"], shown["failing_since"]) == ("", None)
    receiver.answer(200, b"")
    due_now()
    deliver_webhooks()
    assert WebhookDelivery.objects.get().status == "delivered"


def test_an_endpoint_that_is_gone_is_switched_off_at_once(hook, receiver, start):
    receiver.answer(410, b"")
    cancel_run(run_id=start().id)
    deliver_webhooks()
    assert not WebhookEndpoint.objects.get().enabled
    assert WebhookDelivery.objects.get().status == "failed"


def test_two_senders_never_take_one_delivery_and_a_dead_one_loses_it(hook, receiver, start):
    cancel_run(run_id=start().id)
    now = timezone.now()
    (first,) = claim_due(now=now)
    assert claim_due(now=now) == []
    (second,) = claim_due(now=now + CLAIM)
    assert second.delivery_id == first.delivery_id
    record([Report(second, 200)], now=now)
    record([Report(first, 500)], now=now)  # it wakes up late, and no longer counts
    assert WebhookDelivery.objects.get().status == "delivered"


def test_a_rotated_secret_signs_together_with_the_old_one_for_a_while(
    client, hook, receiver, start
):
    new = client.post(f"{PATH}/{hook['id']}/secret", {"overlap_seconds": 3600}).json()["secret"]
    cancel_run(run_id=start().id)
    deliver_webhooks()
    assert receiver.requests[-1].is_signed_with(hook["secret"])
    assert receiver.requests[-1].is_signed_with(new)
    WebhookEndpoint.objects.update(previous_until=timezone.now())
    cancel_run(run_id=start().id)
    deliver_webhooks()
    assert not receiver.requests[-1].is_signed_with(hook["secret"])
    assert receiver.requests[-1].is_signed_with(new)
    shown = client.get(f"{PATH}/{hook['id']}")
    assert b"whsec_" not in shown.content


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/",
        "http://[::ffff:a9fe:a9fe]/",
        "http://2852039166/",
        "http://127.1/",
        "http://metadata.google.internal/",
        "https://user:pw@hooks.example.test/",
        "file:///etc/passwd",
    ],
)
def test_addresses_within_are_refused_when_saved(client, url):
    answer = client.post(PATH, {"url": url})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "url")


def test_a_name_that_comes_to_mean_an_address_within_is_not_connected_to(client, start):
    client.post(PATH, {"url": "https://rebind.example.test/hook"})
    cancel_run(run_id=start().id)
    now = timezone.now()
    (outgoing,) = claim_due(now=now)
    (report,) = send_all([outgoing], resolver=Names(["127.0.0.1"]))
    assert (report.status, report.problem) == (None, "its address may not be reached")


def test_only_admins_and_only_of_the_tenant_see_endpoints(hook, api, bob, charlie):
    assert api(bob.token).get(PATH).status_code == 403
    assert api(charlie.token).get(f"{PATH}/{hook['id']}").status_code == 404
    assert api(charlie.token).get(PATH).json()["data"] == []
