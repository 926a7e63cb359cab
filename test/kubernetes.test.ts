import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { readSidecarConfig } from '../src/sidecar/config';

interface Named {
  readonly name: string;
}

/** The documents of a file, and of its pod the packager and the sidecar. */
function partsOf(file: string) {
  const text = readFileSync(join(__dirname, '../docs', file), 'utf8');
  const manifest = parseAllDocuments(text, { uniqueKeys: true }).map((document) => {
    expect(document.errors).toEqual([]);
    return document.toJS();
  });
  const workload = manifest.find(({ kind }) => kind === 'Deployment' || kind === 'StatefulSet');
  const [packager, sidecar] = workload.spec.template.spec.containers;
  return { manifest, workload, packager, sidecar };
}

/** The variables of a container; what Kubernetes fills in is `packager-0`, as for the first pod. */
function environmentOf({ env = [] }: { env?: { name: string; value?: string }[] }) {
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
    const claims =
      workload.spec.volumeClaimTemplates?.map(({ metadata }: { metadata: Named }) => metadata.name) ?? [];
    const mounted = [packager, sidecar].flatMap(({ volumeMounts }) =>
      volumeMounts.map(({ name }: Named) => name),
    );
    expect([...new Set(mounted)].sort()).toEqual(
      [...volumes.map(({ name }: Named) => name), ...claims].sort(),
    );
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
  const folder = sidecar.volumeMounts.find(({ name }: Named) => name === 'fleet')?.mountPath;
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
