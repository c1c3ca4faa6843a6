//! A server of the 2026-07-28 kind, which knows no `initialize` and tells of changes only to those who listen.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, JsonObject,
    ListToolsResult, PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig,
    SubscriptionFilter, Tool,
};
use rmcp::service::{RequestContext, RoleServer, SubscriptionContext};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tower::ServiceExt as _;

use super::rig::Rig;
use crate::tools::Reach;
use crate::tools::server::State;

#[derive(Clone, Default)]
struct Modern {
    has_grown: Arc<AtomicBool>,
    grown: Arc<Notify>,
}

impl ServerHandler for Modern {
    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(&[ProtocolVersion::V_2026_07_28])
    }

    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        loop {
            tokio::select! {
                () = self.grown.notified() => context.sink().notify_tool_list_changed().await.unwrap(),
                () = context.cancelled() => return Ok(()),
            }
        }
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let names = ["grow", "grown"];
        let count = 1 + usize::from(self.has_grown.load(Ordering::Acquire));
        let tools = names[..count].iter().map(|&name| Tool::new(name, "", Arc::new(JsonObject::new())));
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if call.name == "grow" {
            self.has_grown.store(true, Ordering::Release);
            self.grown.notify_one();
        }
        let key = context.meta.get("confidant/idempotencyKey").and_then(|key| key.as_str()).unwrap_or("none");
        Ok(CallToolResult::success(vec![ContentBlock::text(key)]).into())
    }
}

/// Serves on a port of its own until the test is over.
async fn serve(modern: Modern) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let settings = StreamableHttpServerConfig::default();
    let service: StreamableHttpService<Modern, LocalSessionManager> =
        StreamableHttpService::new(move || Ok(modern.clone()), Arc::default(), settings);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let service = service.clone();
            let service = service_fn(move |request| service.clone().oneshot(request));
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new());
            tokio::spawn(http.serve_connection(TokioIo::new(stream), service));
        }
    });
    format!("http://{address}/mcp")
}

#[tokio::test]
async fn it_is_found_out_addressed_its_own_way_and_listened_to() {
    let url = serve(Modern::default()).await;
    let rig = Rig::reaching(Reach::Http { url: url.parse().unwrap(), token: None }, None).ready().await;
    assert_eq!(rig.names().await, ["s.grow"]);
    assert_eq!(rig.says("grow", json!({})).await, "key-1");
    rig.until(|state| matches!(state, State::Ready(connection) if connection.catalogue.len() == 2)).await;
    assert_eq!(rig.says("grown", json!({})).await, "key-1");
    rig.toolbox.stop().await;
}
