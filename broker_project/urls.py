"""All routes: the API under /api/v1/, its description, and the admin."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView

from broker_project import probes
from broker_project.retention import RetentionView

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="api-docs")),
    path("healthz", probes.healthz),
    path("readyz", probes.readyz),
    path("metrics", probes.metrics),
    path("admin/", admin.site.urls),
    path("api/v1/retention", RetentionView.as_view(), name="retention"),
    path("api/v1/", include("tenants.urls")),
    path("api/v1/", include("journal.urls")),
    path("api/v1/", include("agents.urls")),
    path("api/schema/", SpectacularAPIView.as_view(), name="api-schema"),
    path("api/docs/", SpectacularSwaggerView.as_view(url_name="api-schema"), name="api-docs"),
]

handler404 = "broker_project.errors.not_found"
handler500 = "broker_project.errors.server_error"
