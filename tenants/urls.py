"""Routes of this app, under /api/v1/."""

from django.urls import path

from tenants.views.audit import AuditLog
from tenants.views.endpoints import EndpointDetail, EndpointList
from tenants.views.keys import KeyChecks, KeyDetail, KeyList
from tenants.views.limits import LimitDetail, LimitList
from tenants.views.models import ModelList
from tenants.views.scopes import ScopeDetail, ScopeList
from tenants.views.tokens import TokenDetail, TokenList

urlpatterns = [
    path("keys", KeyList.as_view(), name="keys"),
    path("keys/<uuid:key_id>", KeyDetail.as_view(), name="key"),
    path("keys/<uuid:key_id>/check", KeyChecks.as_view(), name="key-check"),
    path("audit", AuditLog.as_view(), name="audit"),
    path("scopes/<uuid:scope_id>", ScopeDetail.as_view(), name="scope"),
    path("scopes", ScopeList.as_view(), name="scopes"),
    path("tokens", TokenList.as_view(), name="tokens"),
    path("tokens/<uuid:token_id>", TokenDetail.as_view(), name="token"),
    path("endpoints", EndpointList.as_view(), name="endpoints"),
    path("limits", LimitList.as_view(), name="limits"),
    path("limits/<uuid:limit_id>", LimitDetail.as_view(), name="limit"),
    path("models", ModelList.as_view(), name="models"),
    path("endpoints/<uuid:endpoint_id>", EndpointDetail.as_view(), name="endpoint"),
]
