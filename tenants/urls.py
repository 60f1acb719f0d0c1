"""Routes of this app, under /api/v1/."""

from django.urls import path

from tenants.views.endpoints import EndpointDetail, EndpointList
from tenants.views.keys import KeyDetail, KeyList
from tenants.views.models import ModelList
from tenants.views.scopes import ScopeList
from tenants.views.tokens import TokenDetail, TokenList

urlpatterns = [
    path("keys", KeyList.as_view(), name="keys"),
    path("keys/<uuid:key_id>", KeyDetail.as_view(), name="key"),
    path("scopes", ScopeList.as_view(), name="scopes"),
    path("tokens", TokenList.as_view(), name="tokens"),
    path("tokens/<uuid:token_id>", TokenDetail.as_view(), name="token"),
    path("endpoints", EndpointList.as_view(), name="endpoints"),
    path("models", ModelList.as_view(), name="models"),
    path("endpoints/<uuid:endpoint_id>", EndpointDetail.as_view(), name="endpoint"),
]
