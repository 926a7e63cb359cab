import { chmod, chown, cp, mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { onceForAll, temporaryFolder } from '../support/after-test';
import { DIST, runScript } from '../support/built-program';
import { place } from '../support/tls';
import { until } from '../support/until';

const SERVICE = { uid: 1000, gid: 1000 };
const OTHER = { uid: 3500, gid: 3500 };

/** A copy of the program, since user 1000 may not read a clone in root's home. */
let program: string;
let folder: string;
const folderForAll = async () => {
  const made = await temporaryFolder();
  await chmod(made, 0o755);
  return made;
};

const copied = onceForAll(async () => {
  const made = await folderForAll();
  await cp(join(DIST, 'sidecar'), join(made, 'dist', 'sidecar'), { recursive: true });
  await cp(join(DIST, '../package.json'), join(made, 'package.json'));
  // With a umask of 077 the build is for its owner alone.
  for (const file of await readdir(made, { recursive: true })) await chmod(join(made, file), 0o755);
  return made;
});

beforeEach(async () => {
  program = await copied();
  folder = await folderForAll();
});

/** Starts the sidecar as a user who owns nothing here, as a container does. */
function start(env: Record<string, string>) {
  const sidecar = runScript(join(program, 'dist', 'sidecar', 'main.js'), {
    cwd: folder,
    env: { PACKAGERDRMAPI_HOST: '127.0.0.1', PACKAGERDRMAPI_PORT: '0', ...env },
    ...SERVICE,
  });
  const line = async (message: string) => {
    const [found] = await sidecar.until(new RegExp(`^.*"message":"${message}".*$`, 'm'));
    return JSON.parse(found);
  };
  const refused = async () => {
    const { code, stderr } = await sidecar.ended;
    return { code, stderr };
  };
  return { line, refused };
}

async function owned(path: string, { uid, gid }: typeof OTHER, mode: number): Promise<string> {
  await chown(path, uid, gid);
  await chmod(path, mode);
  return path;
}

function fault(sentence: string) {
  const stderr = `The configuration has a fault:\n  - ${sentence}\nSee docs/configuration.md.\n`;
  return { code: 2, stderr };
}

const RUNS_AS = 'this service runs as user 1000, group 1000, and may not';
const ON_THE_HOST =
  'A file that is mounted into a container, like a secret of compose, has the owner and mode that it has on the host: change them there.';
const GIVE_FOLDER =
  'As root: chown 1000:1000 and chmod 0750 (docs/run-with-docker.md says how for a volume, and how it came by another owner). A folder of the packager stays its own: run this service as its user.';

// Root alone can become another user.
const asRoot = process.getuid?.() === 0 ? describe : describe.skip;

asRoot('a service that is another user than the owner', () => {
  test.each([
    ['APIKEY_FILE', false],
    ['TLSKEY', true],
  ])('says whose the file of PACKAGERDRMAPI_%s is, and how to let it read the file', async (name, isTls) => {
    const certificate = join(folder, 'own.crt');
    place('server', certificate);
    await chmod(certificate, 0o644);
    const others = isTls && { PACKAGERDRMAPI_APIKEY: 'key', PACKAGERDRMAPI_TLSCERT: certificate };
    const file = join(folder, 'own.key');
    await writeFile(file, 'a-key-of-this-test\n');
    await owned(file, OTHER, 0o600);
    const why = `${RUNS_AS} read ${file}, which belongs to user 3500, group 3500 and has mode 0600. As root: chown 1000 and chmod 0400. ${ON_THE_HOST}`;
    expect(await start({ ...(others || {}), [`PACKAGERDRMAPI_${name}`]: file }).refused()).toEqual(
      fault(`PACKAGERDRMAPI_${name}: ${why}`),
    );
  });

  test('says the same of the file .env in its working folder', async () => {
    const file = join(folder, '.env');
    await writeFile(file, 'PACKAGERDRMAPI_APIKEY=a-key-of-this-test\n');
    await owned(file, OTHER, 0o600);
    const why = `${RUNS_AS} read ${file}, which belongs to user 3500, group 3500 and has mode 0600.`;
    expect((await start({}).refused()).stderr).toContain(`.env: ${why}`);
  });

  test('names the folder on the way to a file that it may not enter', async () => {
    const closed = join(folder, 'secrets');
    await mkdir(closed);
    await writeFile(join(closed, 'apikey.txt'), 'a-key-of-this-test\n');
    await owned(closed, OTHER, 0o700);
    const why = `${RUNS_AS} enter ${closed}, which belongs to user 3500, group 3500 and has mode 0700. As root: let its group enter, chgrp and chmod g+x, or everyone, chmod o+x.`;
    expect(await start({ PACKAGERDRMAPI_APIKEY_FILE: join(closed, 'apikey.txt') }).refused()).toEqual(
      fault(`PACKAGERDRMAPI_APIKEY_FILE: ${why}`),
    );
  });

  test('says in its log and at /readyz whose the key folder is, and is ready when it was given the folder', async () => {
    const keys = join(folder, 'keys');
    await mkdir(keys);
    await owned(keys, OTHER, 0o755);
    const sidecar = start({ PACKAGERDRMAPI_APIKEY: 'key', PACKAGERDRMAPI_KEYFILESPATH: keys });
    const owner = 'which belongs to user 3500, group 3500 and has mode 0755';
    expect(await sidecar.line('the key-file folder cannot be used')).toEqual({
      time: expect.any(String),
      level: 'error',
      message: 'the key-file folder cannot be used',
      keyFilesPath: keys,
      why: `${RUNS_AS} write to ${keys}, ${owner}. ${GIVE_FOLDER}`,
    });
    const { url } = await sidecar.line('listening');
    // Until the folder is swept, that is all it says.
    let refused = await fetch(`${url}/readyz`);
    await until(async () => {
      refused = await fetch(`${url}/readyz`);
      return !(await refused.clone().text()).includes('"starting"');
    });
    const description = `The key-file folder is not usable: ${RUNS_AS} write to it, ${owner}. ${GIVE_FOLDER}`;
    expect([refused.status, await refused.json()]).toEqual([
      503,
      { errors: [{ code: 'key_files_not_writable', description }] },
    ]);
    await owned(keys, SERVICE, 0o750);
    let ready = refused;
    await until(async () => {
      ready = await fetch(`${url}/readyz`);
      return ready.ok;
    });
    expect(await ready.json()).toEqual({ status: 'ready' });
  });

  test('names the folder in which it may not make the key folder', async () => {
    await owned(folder, OTHER, 0o755);
    const keys = join(folder, 'new', 'keys');
    const sidecar = start({ PACKAGERDRMAPI_APIKEY: 'key', PACKAGERDRMAPI_KEYFILESPATH: keys });
    const { why } = await sidecar.line('the key-file folder cannot be used');
    expect(why).toBe(
      `${RUNS_AS} make ${keys} in ${folder}, which belongs to user 3500, group 3500 and has mode 0755. As root: make it, and ${GIVE_FOLDER.slice('As root: '.length)}`,
    );
  });
});
