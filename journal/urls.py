"""Routes of this app, under /api/v1/."""

from django.urls import path

from journal import views

urlpatterns = [
    path("calls", views.CallsView.as_view(), name="calls"),
    path("calls.csv", views.CSVExportView.as_view(), name="calls-csv"),
    path("calls.jsonl", views.JSONLinesExportView.as_view(), name="calls-jsonl"),
    path("calls/<uuid:call_id>", views.CallView.as_view(), name="call"),
    path("calls/<uuid:call_id>/payload", views.PayloadView.as_view(), name="payload"),
    path("ratings", views.RatingsView.as_view(), name="ratings"),
    path("stats", views.StatsView.as_view(), name="stats"),
]
