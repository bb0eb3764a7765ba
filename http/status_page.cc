#include "http/status_page.h"

namespace conductor::http {

namespace {

// Texts from the service enter the page through textContent only.
constexpr std::string_view kPage = R"html(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Conductor</title>
<style>
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; margin: 0; }
h2 { font-size: 1.05rem; margin: 1.8rem 0 .4rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .3rem .7rem .3rem 0; border-bottom: 1px solid #8884;
         vertical-align: top; overflow-wrap: anywhere; }
th { font-weight: 600; }
#status { margin: .3rem 0 0; }
.live, .ready { color: #2a8a3e; }
.degraded, .mismatch, .error { color: #c4382c; }
.connecting, .catching_up, .waiting { color: #b07a00; }
</style>
</head>
<body>
<h1>Conductor</h1>
<p id="status">Loading…</p>
<p id="snapshot"></p>
<h2>Services</h2>
<table id="services"></table>
<h2>Contexts</h2>
<table id="contexts"></table>
<script>
"use strict";
const get = async path => (await fetch(path, {headers: {Accept: "application/json"}})).json();
function cell(row, tag, value, style) {
  const element = document.createElement(tag);
  element.textContent = value === null || value === undefined ? "–" : String(value);
  if (style) element.className = style;
  row.appendChild(element);
}
function table(id, columns, rows) {
  const target = document.getElementById(id);
  target.replaceChildren();
  const head = target.insertRow();
  for (const column of columns) cell(head, "th", column);
  for (const cells of rows) {
    const row = target.insertRow();
    for (const [value, style] of cells) cell(row, "td", value, style);
  }
  if (rows.length === 0) cell(target.insertRow(), "td", "none");
}
function progress(ready) {
  if (ready.phase !== "loading_snapshot" && ready.phase !== "rebuilding") return "";
  const left = ready.seconds_left === null ? "" : `, ${ready.seconds_left.toFixed(0)} s left`;
  return `, ${ready.percent.toFixed(1)} %, ` +
      `${(ready.blocks_per_s / 1e6).toFixed(2)} M blocks/s${left}`;
}
function snapshotLine(state) {
  const line = document.getElementById("snapshot");
  let text = state.snapshot_age_ms === null ? "No snapshot" :
      `Snapshot at ${state.snapshot_seq} of ${state.log_applied}, ` +
      `${(state.snapshot_age_ms / 1000).toFixed(0)} s old, ${state.snapshot_bytes} bytes`;
  if (state.snapshot_percent !== null) text += `; writing one, ${state.snapshot_percent} %`;
  const wrong = [state.log_error, state.snapshot_error].filter(Boolean).join("; ");
  line.textContent = wrong ? `${text}; ${wrong}` : text;
  line.className = wrong ? "error" : "";
}
async function refresh() {
  const status = document.getElementById("status");
  try {
    const [version, ready] = await Promise.all([get("/version"), get("/readyz")]);
    status.textContent = `${version.version} (${version.commit}): ${ready.phase}, ` +
        `${ready.replayed} of ${ready.total} log records` + progress(ready);
    status.className = ready.ready ? "ready" : "waiting";
    snapshotLine(await get("/status"));
    const [services, view] = await Promise.all([get("/services?detail=1"), get("/global_view")]);
    table("services",
          ["Instance", "Rank", "Type", "Model", "Tenant", "Endpoint", "State", "Last number",
           "Frame age", "Hashes", "Device blocks", "Error"],
          (services.services || []).map(s => [
            [s.InstanceID], [s.DPRank], [s.Type], [s.ModelName], [s.TenantID], [s.Endpoint],
            [s.StreamState, s.StreamState], [s.LastSeq],
            [s.LastFrameAgeMs === null ? null : `${(s.LastFrameAgeMs / 1000).toFixed(1)} s`],
            [s.HashCheck, s.HashCheck], [s.Blocks.device], [s.LastError || null, "error"]]));
    table("contexts", ["Model", "LoRA", "Tenant", "Block size", "Blocks", "Instances"],
          (view.contexts || []).map(c => [
            [c.model_name], [c.lora_name || null], [c.tenant_id], [c.block_size], [c.prefix_count],
            [Object.keys(c.instances).join(", ")]]));
  } catch (error) {
    status.textContent = `No answer: ${error}`;
    status.className = "error";
  }
}
refresh();
setInterval(refresh, 3000);
</script>
</body>
</html>
)html";

}  // namespace

std::string_view StatusPage() {
  return kPage;
}

}  // namespace conductor::http
