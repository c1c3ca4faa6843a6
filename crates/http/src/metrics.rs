//! What is counted, for Prometheus.
//!
//! Labels are route templates, methods and statuses: few in number, and never an id of anything. Turns are counted by the
//! engine itself; this only reads its counts when asked. A streamed answer counts as done when it starts.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderValue, Method, header};
use axum::response::{IntoResponse, Response};
use confidant_channel::{Condition, Health, Status};
use confidant_engine::Engine;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::app::App;
use super::auth::Operator;
use super::error::ApiError;
use super::openapi::Failures;
use super::standing::{Component, Standing};

/// The counts of one server.
#[derive(Debug)]
pub(super) struct Metrics {
    registry: Registry,
    requests: Family<Request, Counter>,
    durations: Family<Route, Histogram, fn() -> Histogram>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Request {
    route: String,
    method: &'static str,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Route {
    route: String,
    method: &'static str,
}

impl Metrics {
    pub(super) fn new(engine: Engine, standing: &Standing) -> Self {
        let mut registry = Registry::with_prefix("confidant");
        let requests = Family::<Request, Counter>::default();
        registry.register("http_requests", "HTTP requests by route, method and status", requests.clone());
        let buckets: fn() -> Histogram = || Histogram::new(BUCKETS);
        let durations = Family::new_with_constructor(buckets);
        let help = "Time until an answer was ready or began to stream";
        registry.register_with_unit("http_request_duration", help, Unit::Seconds, durations.clone());
        registry.register_collector(Box::new(Turns(engine)));
        registry.register_collector(Box::new(Channels(standing.channels.clone())));
        registry.register_collector(Box::new(Parts(standing.components.clone())));
        Self { registry, requests, durations }
    }

    /// Counts a request. `route` is the template, never the path.
    pub(super) fn request(&self, route: &str, method: &Method, status: u16, took: Duration) {
        let (route, method) = (route.to_owned(), method_name(method));
        self.requests.get_or_create(&Request { route: route.clone(), method, status }).inc();
        self.durations.get_or_create(&Route { route, method }).observe(took.as_secs_f64());
    }
}

const BUCKETS: [f64; 12] = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 20.0, 60.0];

/// A client may invent methods; labels may not grow with them.
pub(super) fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::DELETE => "DELETE",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

/// What components count, read at each scrape.
#[derive(Debug)]
struct Parts(Vec<Arc<dyn Component>>);

impl Collector for Parts {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for gauge in self.0.iter().flat_map(|part| part.gauges()) {
            let value = ConstGauge::new(i64::try_from(gauge.value).unwrap_or(i64::MAX));
            let metric = encoder.encode_descriptor(gauge.name, gauge.help, None, MetricType::Gauge)?;
            value.encode(metric)?;
        }
        Ok(())
    }
}

/// The engine's own counts, read at each scrape.
#[derive(Debug)]
struct Turns(Engine);

impl Collector for Turns {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let counts = self.0.counts();
        let counted = [
            ("turns_accepted", "Turns accepted", counts.accepted),
            ("turns_answered", "Turns answered", counts.answered),
            ("turns_failed", "Turns that ended without an answer", counts.failed),
            (
                "turns_paused",
                "Times that a turn stopped to wait for an approval or for its client",
                counts.paused,
            ),
            ("turns_cancelled", "Turns that were cancelled", counts.cancelled),
            ("turns_replayed", "Turns answered from the log", counts.replayed),
            ("turns_resumed", "Turns that were interrupted and resumed", counts.resumed),
            (
                "turns_degraded",
                "Turns answered without memory because it could not be opened",
                counts.degraded,
            ),
            ("tool_calls", "Tools called", counts.tool_calls),
            (
                "store_conflicts",
                "Writes that lost a race with another process and were retried",
                counts.conflicts,
            ),
            ("sessions_erased", "Sessions erased", counts.erased),
            ("concepts_captured", "Turns that brought concepts into scope", counts.concepts_captured),
            (
                "contexts_failed",
                "Times that concepts in scope could not be loaded, described or saved",
                counts.contexts_failed,
            ),
        ];
        for (name, help, value) in counted {
            let counter = ConstCounter::new(value);
            counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)?;
        }
        let running = ConstGauge::new(i64::try_from(counts.running).unwrap_or(i64::MAX));
        let kind = running.metric_type();
        running.encode(encoder.encode_descriptor("turns_running", "Turns running now", None, kind)?)
    }
}

/// What the channels count themselves, read at each scrape.
#[derive(Debug)]
struct Channels(Health);

/// A channel as a label: the operator's own word for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ChannelLabel {
    platform: &'static str,
    label: String,
}

impl Collector for Channels {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let all = self.0.all();
        if all.is_empty() {
            return Ok(());
        }
        type Read = fn(&Status) -> u64;
        let counted: [(&str, &str, Read); 5] = [
            ("channel_events_received", "Events that were stored", |status| status.received),
            ("channel_events_repeated", "Duplicate events that were ignored", |status| status.duplicates),
            ("channel_events_answered", "Events that were answered completely", |status| status.answered),
            ("channel_events_undelivered", "Events whose reply could not be delivered", |status| {
                status.undelivered
            }),
            ("channel_reconnects", "Reconnects of a channel", |status| status.reconnects),
        ];
        for (name, help, read) in counted {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for status in &all {
                let labels = ChannelLabel { platform: status.platform, label: status.label.clone() };
                ConstCounter::new(read(status)).encode(metric.encode_family(&labels)?)?;
            }
        }
        let measured: [(&str, &str, Read); 2] = [
            ("channel_up", "Whether a channel is connected", |status| {
                u64::from(status.condition == Condition::Up)
            }),
            ("channel_backlog", "Events that are not answered yet", |status| status.backlog),
        ];
        for (name, help, read) in measured {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for status in &all {
                let labels = ChannelLabel { platform: status.platform, label: status.label.clone() };
                let value = i64::try_from(read(status)).unwrap_or(i64::MAX);
                ConstGauge::new(value).encode(metric.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

/// Counts for Prometheus
#[utoipa::path(
    get, path = "/metrics", operation_id = "metrics", tag = "server", security(("bearer" = [])),
    responses((status = 200, description = "OpenMetrics text", body = String, content_type = "application/openmetrics-text"), Failures)
)]
pub(super) async fn metrics(State(app): State<App>, _: Operator) -> Result<Response, ApiError> {
    let mut text = String::new();
    encode(&mut text, &app.metrics.registry).map_err(|_| ApiError::internal())?;
    let media = HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    Ok(([(header::CONTENT_TYPE, media)], text).into_response())
}
