import { connect } from 'node:net';
import { collectDefaultMetrics } from 'prom-client';
import { CONNECTION_STATES, createConnections, REFUSAL_CAUSES } from '../../../src/http/connections';
import { HttpError } from '../../../src/http/errors';
import type { FaultyKeyFiles } from '../../../src/sidecar/key-files/changes';
import { createMetrics, type MetricsOptions } from '../../../src/sidecar/observe/metrics';
import { CACHE_EVENTS } from '../../../src/sidecar/provider-cache';
import { AUDIT_ENTRY } from '../../support/start-audit';
import { seriesOf, startObserved } from '../../support/start-observed';

/** The metrics before any event. */
const AT_REST = {
  'packagerdrmapi_failures_total{code="server_error"}': 0,
  'packagerdrmapi_failures_total{code="insufficient_storage"}': 0,
  'packagerdrmapi_failures_total{code="key_files_not_readable"}': 0,
  'packagerdrmapi_failures_total{code="key_files_not_writable"}': 0,
  'packagerdrmapi_refused_total{reason="unauthorized"}': 0,
  'packagerdrmapi_refused_total{reason="forbidden"}': 0,
  'packagerdrmapi_refused_total{reason="too_many_attempts"}': 0,
  'packagerdrmapi_refused_total{reason="too_many_pulls"}': 0,
  ...Object.fromEntries(
    CACHE_EVENTS.map((event) => [`packagerdrmapi_provider_cache_events_total{event="${event}"}`, 0]),
  ),
  packagerdrmapi_audit_lines_waiting: 5,
  packagerdrmapi_audit_lines_lost_total: 3,
  ...Object.fromEntries(
    CONNECTION_STATES.map((state) => [`packagerdrmapi_connections{state="${state}"}`, 0]),
  ),
  ...Object.fromEntries(
    REFUSAL_CAUSES.map((cause) => [`packagerdrmapi_connections_refused_total{cause="${cause}"}`, 0]),
  ),
};

const observeProcess: MetricsOptions['observeProcess'] = (register) => collectDefaultMetrics({ register });

test('answers /metrics without a key, in the text format of Prometheus, and lets nobody keep it', async () => {
  const { client } = await startObserved([1], observeProcess);
  const { status, headers, text } = await client.get('/metrics');
  expect(status).toBe(200);
  expect(headers).toMatchObject({
    'content-type': 'text/plain; version=0.0.4; charset=utf-8',
    'cache-control': 'no-store',
  });
  expect(text).toContain(`packagerdrmapi_build_info{version="1.2.3",node="${process.version}"} 1\n`);
  expect(text).toMatch(/^# TYPE packagerdrmapi_audit_lines_lost_total counter$/m);
  await client.head('/metrics').expect(200);
  await client.post('/metrics').send({}).expect(405).expect('allow', 'GET, HEAD');
  expect(text).toMatch(/^process_resident_memory_bytes \d+$/m);
  expect(text).toMatch(/^nodejs_eventloop_lag_p99_seconds /m);
});

test('reports no events that have not happened, nor a process that nothing measures', async () => {
  const { client, series } = await startObserved();
  expect(await series()).toEqual(AT_REST);
  expect((await client.get('/metrics')).text).not.toMatch(/^(?:nodejs|process)_/m);
});

test('counts requests by method, route and status, 499 if the client went away, and their durations', async () => {
  const { client, metrics, series } = await startObserved([200, 300, 40]);
  await client.get('/api/keyfile/live');
  await client.get('/api/keyfile/other');
  await client.get('/nowhere');
  metrics.request({ method: 'GET', route: '/slow', status: 200, ms: 10, aborted: true });
  expect(await series()).toEqual({
    ...AT_REST,
    'packagerdrmapi_http_requests_total{method="GET",route="/slow",status="499"}': 1,
    'packagerdrmapi_http_request_duration_seconds_sum{method="GET",route="/slow"}': 0.01,
    'packagerdrmapi_http_request_duration_seconds_count{method="GET",route="/slow"}': 1,
    'packagerdrmapi_http_requests_total{method="GET",route="/api/keyfile/:streamid",status="200"}': 2,
    'packagerdrmapi_http_request_duration_seconds_sum{method="GET",route="/api/keyfile/:streamid"}': 0.5,
    'packagerdrmapi_http_request_duration_seconds_count{method="GET",route="/api/keyfile/:streamid"}': 2,
    'packagerdrmapi_http_requests_total{method="GET",route="unmatched",status="404"}': 1,
    'packagerdrmapi_http_request_duration_seconds_sum{method="GET",route="unmatched"}': 0.04,
    'packagerdrmapi_http_request_duration_seconds_count{method="GET",route="unmatched"}': 1,
    'packagerdrmapi_failures_total{code="not_found"}': 1,
  });
});

test('counts upstream calls, write phases, changes and key files', async () => {
  const { metrics, series } = await startObserved();
  metrics.upstreamCall('key_provider', 200, 250);
  metrics.upstreamCall('key_provider', 'none', 5000);
  metrics.upstreamCall('config_service', 999, 1);
  metrics.writePhase('sync', 2);
  metrics.writePhase('folder_sync', 4);
  metrics.keyFilesChanged(1);
  metrics.keyFilesCounted(10);
  for (const more of [1, 1, -1]) metrics.keyFilesChanged(more);
  const counted = metrics.counting(() => undefined);
  counted({ ...AUDIT_ENTRY, action: 'put', result: 'created' });
  counted({ ...AUDIT_ENTRY, action: 'put', result: 'created' });
  counted({ ...AUDIT_ENTRY, action: 'put', result: 'changed' });
  counted({ ...AUDIT_ENTRY, action: 'delete', result: 'deleted' });
  counted({ ...AUDIT_ENTRY, action: 'refused', result: 'forbidden' });
  metrics.failed(new HttpError(507, { code: 'insufficient_storage', description: 'Full.' }));
  expect(await series()).toEqual({
    ...AT_REST,
    'packagerdrmapi_upstream_requests_total{upstream="key_provider",status="200"}': 1,
    'packagerdrmapi_upstream_requests_total{upstream="key_provider",status="none"}': 1,
    'packagerdrmapi_upstream_requests_total{upstream="config_service",status="other"}': 1,
    'packagerdrmapi_upstream_request_duration_seconds_sum{upstream="key_provider"}': 5.25,
    'packagerdrmapi_upstream_request_duration_seconds_count{upstream="key_provider"}': 2,
    'packagerdrmapi_upstream_request_duration_seconds_sum{upstream="config_service"}': 0.001,
    'packagerdrmapi_upstream_request_duration_seconds_count{upstream="config_service"}': 1,
    'packagerdrmapi_write_phase_duration_seconds_sum{phase="sync"}': 0.002,
    'packagerdrmapi_write_phase_duration_seconds_count{phase="sync"}': 1,
    'packagerdrmapi_write_phase_duration_seconds_sum{phase="folder_sync"}': 0.004,
    'packagerdrmapi_write_phase_duration_seconds_count{phase="folder_sync"}': 1,
    'packagerdrmapi_key_file_changes_total{action="put",result="created"}': 2,
    'packagerdrmapi_key_file_changes_total{action="put",result="changed"}': 1,
    'packagerdrmapi_key_file_changes_total{action="delete",result="deleted"}': 1,
    'packagerdrmapi_key_file_changes_total{action="refused",result="forbidden"}': 1,
    packagerdrmapi_key_files: 11,
    'packagerdrmapi_failures_total{code="insufficient_storage"}': 1,
  });
});

test('reports the last usable answer of each upstream, and the events of the provider cache', async () => {
  const { metrics, series } = await startObserved();
  metrics.upstreamAnswered('config_service', new Date(1_767_323_045_678));
  metrics.upstreamAnswered('key_provider', new Date(1_000_000));
  metrics.upstreamAnswered('key_provider', new Date(2_000_000));
  for (const event of ['kept', 'kept', 'used', 'missed', 'damaged', 'not_kept'] as const)
    metrics.providerCache(event);
  expect(await series()).toEqual({
    ...AT_REST,
    'packagerdrmapi_upstream_last_answer_timestamp_seconds{upstream="config_service"}': 1_767_323_045.678,
    'packagerdrmapi_upstream_last_answer_timestamp_seconds{upstream="key_provider"}': 2000,
    'packagerdrmapi_provider_cache_events_total{event="kept"}': 2,
    'packagerdrmapi_provider_cache_events_total{event="used"}': 1,
    'packagerdrmapi_provider_cache_events_total{event="missed"}': 1,
    'packagerdrmapi_provider_cache_events_total{event="damaged"}': 1,
    'packagerdrmapi_provider_cache_events_total{event="not_kept"}': 1,
  });
});

test('reports the ends of certificates and the number of key files with faults, as they are at the scrape', async () => {
  let clientAuthorities: Date | undefined = new Date(3_000_000);
  let faulty: FaultyKeyFiles | undefined;
  const metrics = createMetrics({
    version: '1',
    audit: { lost: () => 0, waiting: () => 0 },
    connections: createConnections(),
    certificateEnds: () => ({ server: new Date(2_000_000), clientAuthorities }),
    faultyKeyFiles: () => faulty,
  });
  const reported = async () => {
    const series = Object.entries(seriesOf((await metrics.scrape()).text));
    return Object.fromEntries(series.filter(([name]) => /_tls_|_faulty/.test(name)));
  };
  const server = { 'packagerdrmapi_tls_certificate_not_after_timestamp_seconds{certificate="server"}': 2000 };
  expect(await reported()).toEqual({
    ...server,
    'packagerdrmapi_tls_certificate_not_after_timestamp_seconds{certificate="client_authorities"}': 3000,
  });
  clientAuthorities = undefined;
  faulty = { error: 3, warning: 0 };
  expect(await reported()).toEqual({
    ...server,
    'packagerdrmapi_key_files_faulty{severity="error"}': 3,
    'packagerdrmapi_key_files_faulty{severity="warning"}': 0,
  });
});

describe('hostile callers', () => {
  const lines = async (client: Awaited<ReturnType<typeof startObserved>>['client']) =>
    (await client.get('/metrics')).text.split('\n').filter((line) => line.startsWith('packagerdrmapi_'))
      .length;

  /** Sends requests over one connection, each when the one before is answered. */
  function sendAll(port: number, requests: readonly string[]): Promise<void> {
    return new Promise((resolve, reject) => {
      let answered = 0;
      const socket = connect(port, '127.0.0.1', () => socket.write(requests[0] ?? ''));
      socket.setEncoding('latin1').on('data', (text: string) => {
        answered += text.split('HTTP/1.1 ').length - 1;
        if (answered < requests.length) socket.write(requests[answered] ?? '');
        else socket.destroy();
      });
      socket.on('error', reject).on('close', () => resolve());
    });
  }

  test('add no series by stream ids, paths, queries and addresses', async () => {
    const { client, port } = await startObserved();
    const ask = (target: string) => `GET ${target} HTTP/1.1\r\nhost: here\r\n\r\n`;
    await sendAll(port, [ask('/api/keyfile/live'), ask('/elsewhere')]);
    await client.get('/metrics');
    const before = await lines(client);
    for (let round = 0; round < 2; round += 1) {
      const names = Array.from({ length: 4 }, (_, index) => `hostile-${round}-${index}`);
      const targets = (name: string) => [
        `/api/keyfile/${name}`,
        `/${name}`,
        `/api/keyfile/x?${name}`,
        `/${name}%0a`,
      ];
      await sendAll(port, names.flatMap(targets).map(ask));
    }
    const { text } = await client.get('/metrics');
    expect(await lines(client)).toBe(before);
    expect(text).not.toContain('hostile');
    expect(seriesOf(text)).toMatchObject({
      'packagerdrmapi_http_requests_total{method="GET",route="/api/keyfile/:streamid",status="200"}': 17,
      'packagerdrmapi_http_requests_total{method="GET",route="unmatched",status="404"}': 17,
    });
  });

  test('share one label for methods that are none of ours', async () => {
    const { client, port } = await startObserved();
    const methods = ['PROPFIND', 'MKCOL', 'LOCK', 'SEARCH', 'PURGE', 'TRACE', 'UNLINK', 'M-SEARCH'];
    await sendAll(
      port,
      methods.map((method) => `${method} /x HTTP/1.1\r\nhost: here\r\n\r\n`),
    );
    const { text } = await client.get('/metrics');
    expect(seriesOf(text)).toMatchObject({
      'packagerdrmapi_http_requests_total{method="other",route="unmatched",status="404"}': methods.length,
    });
  });
});
