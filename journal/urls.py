from django.urls import path

from journal import views

urlpatterns = [
    path("calls", views.CallsView.as_view(), name="calls"),
    path("calls/<uuid:call_id>", views.CallView.as_view(), name="call"),
    path("ratings", views.RatingsView.as_view(), name="ratings"),
    path("stats", views.StatsView.as_view(), name="stats"),
]
