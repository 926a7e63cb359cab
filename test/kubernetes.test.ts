import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { readSidecarConfig } from '../src/sidecar/config';

interface Container {
  readonly name: string;
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
  readonly volumeMounts: readonly {
    readonly name: string;
    readonly mountPath: string;
    readonly readOnly?: boolean;
  }[];
  readonly readinessProbe?: unknown;
  readonly livenessProbe?: unknown;
  readonly securityContext?: unknown;
}

interface Workload {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly serviceName?: string;
    readonly selector: unknown;
    readonly template: {
      readonly metadata: { readonly labels: unknown };
      readonly spec: {
        readonly containers: readonly Container[];
        readonly volumes: readonly { readonly name: string }[];
        readonly securityContext?: unknown;
      };
    };
    readonly volumeClaimTemplates?: readonly { readonly metadata: { readonly name: string } }[];
  };
}

function readManifest(file: string): readonly Workload[] {
  const text = readFileSync(join(__dirname, '../docs', file), 'utf8');
  return parseAllDocuments(text, { uniqueKeys: true }).map((document) => {
    expect(document.errors).toEqual([]);
    return document.toJS();
  });
}

function partsOf(file: string) {
  const manifest = readManifest(file);
  const workload = manifest.find(({ kind }) => kind === 'Deployment' || kind === 'StatefulSet');
  const containers = workload?.spec.template.spec.containers ?? [];
  const [packager, sidecar] = containers;
  if (!workload || !packager || !sidecar) throw new Error(`${file} has no packager with a sidecar`);
  return { manifest, workload, packager, sidecar };
}

/** The variables of a container; what Kubernetes fills in is `packager-0`, as for the first pod. */
function environmentOf({ env = [] }: Container): Record<string, string> {
  return Object.fromEntries(env.map(({ name, value = 'packager-0' }) => [name, value]));
}

test.each(['kubernetes.yaml', 'kubernetes-fleet.yaml'])(
  'the sidecar of docs/%s understands all its variables, and shares its folder with a packager that only reads',
  (file) => {
    const { workload, packager, sidecar } = partsOf(file);
    const config = readSidecarConfig(environmentOf(sidecar), () => '');
    expect(config.unknownVariables).toEqual([]);
    expect(config.port).toBe(8080);
    expect(packager.volumeMounts).toEqual([
      { name: 'keys', mountPath: expect.stringMatching(/\/keys$/), readOnly: true },
    ]);
    expect(sidecar.volumeMounts).toContainEqual({ name: 'keys', mountPath: '/keys' });
    const { volumes } = workload.spec.template.spec;
    const claims = workload.spec.volumeClaimTemplates?.map(({ metadata }) => metadata.name) ?? [];
    const mounted = [packager, sidecar].flatMap(({ volumeMounts }) => volumeMounts.map(({ name }) => name));
    expect([...new Set(mounted)].sort()).toEqual([...volumes.map(({ name }) => name), ...claims].sort());
    expect(workload.spec.selector).toEqual({ matchLabels: workload.spec.template.metadata.labels });
    expect(workload.spec.template.spec.securityContext).toMatchObject({
      runAsNonRoot: true,
      seccompProfile: { type: 'RuntimeDefault' },
    });
    expect(sidecar.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
  },
);

test('the sidecar of docs/packager-drm-api.service writes keys and log only, gains no right and leaves no core dump', () => {
  const unit = readFileSync(join(__dirname, '../docs/packager-drm-api.service'), 'utf8').split('\n');
  expect(unit).toEqual(
    expect.arrayContaining([
      'ProtectSystem=strict',
      'ReadWritePaths=/usr/local/WowzaStreamingEngine/keys',
      'LogsDirectory=packager-drm-api',
      'NoNewPrivileges=true',
      'CapabilityBoundingSet=',
      'LimitCORE=0',
      'RestartSec=3',
      'SystemCallFilter=@system-service',
      'SystemCallErrorNumber=EPERM',
    ]),
  );
  expect(unit).not.toContain('User=root');
});

test('each pod of docs/kubernetes-fleet.yaml is a packager of one fleet, under its own name', () => {
  const { manifest, workload, sidecar } = partsOf('kubernetes-fleet.yaml');
  expect(sidecar.env).toContainEqual({
    name: 'PACKAGERDRMAPI_FLEET_NAME',
    valueFrom: { fieldRef: { fieldPath: 'metadata.name' } },
  });
  const { fleet } = readSidecarConfig(environmentOf(sidecar), () => '');
  expect(fleet?.urls).toHaveLength(3);
  const { secretFile, tls, user } = fleet ?? {};
  const paths = [
    secretFile,
    tls?.authorities,
    tls?.client?.certificate,
    tls?.client?.key,
    user?.passwordFile,
  ];
  const folder = sidecar.volumeMounts.find(({ name }) => name === 'fleet')?.mountPath;
  for (const path of paths) expect(path?.slice(0, path.lastIndexOf('/'))).toBe(folder);
  const named = (kind: string) =>
    manifest.filter((each) => each.kind === kind).map(({ metadata }) => metadata.name);
  expect(named('Service')).toContain(workload.spec.serviceName);
  const selects = manifest.flatMap(({ kind, spec }) =>
    kind === 'PodDisruptionBudget' ? [spec.selector] : [],
  );
  expect(selects).toEqual([workload.spec.selector]);
});

test('a pod of docs/kubernetes-fleet.yaml is asked whether it has joined, and is not restarted while it has not', () => {
  const { sidecar } = partsOf('kubernetes-fleet.yaml');
  expect(sidecar).not.toHaveProperty('startupProbe');
  expect(sidecar.readinessProbe).toMatchObject({ httpGet: { path: '/readyz', port: 'key-files' } });
  expect(sidecar.livenessProbe).toMatchObject({ httpGet: { path: '/healthz', port: 'key-files' } });
});
