#!/usr/bin/env node
// Run after `npm install` when the registry in use is a mirror without the packages of some platforms: npm leaves
// those out of package-lock.json, and `npm ci` then refuses the file everywhere. This adds an entry for each, told
// from its name (`core-win32-x64-msvc`). npm fills in the integrity where it can reach the package.
const { readFileSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');

const OS = [
  'aix',
  'android',
  'darwin',
  'freebsd',
  'linux',
  'netbsd',
  'openbsd',
  'openharmony',
  'sunos',
  'win32',
];
const CPU = ['arm64', 'armv7', 'arm', 'ia32', 'loong64', 'mips64el', 'ppc64', 'riscv64', 's390x', 'x64'];

const path = join(__dirname, '..', 'package-lock.json');
const lock = JSON.parse(readFileSync(path, 'utf8'));
let added = 0;

for (const [parent, entry] of Object.entries(lock.packages)) {
  if (parent === '') continue;
  for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
    const place = `node_modules/${name}`;
    if (lock.packages[place] || lock.packages[`${parent}/${place}`]) continue;
    const parts = name.split('/').at(-1).split('-');
    const os = OS.find((known) => parts.includes(known));
    const cpu = CPU.find((known) => parts.includes(known));
    if (!os || !cpu) {
      process.stderr.write(`${name}: its name tells no platform; add it by hand\n`);
      process.exitCode = 1;
      continue;
    }
    lock.packages[place] = {
      version,
      cpu: [cpu],
      ...(entry.dev && { dev: true }),
      optional: true,
      os: [os],
      ...(os === 'linux' && name.includes('musl') && { libc: ['musl'] }),
    };
    added += 1;
  }
}

const { '': root, ...rest } = lock.packages;
lock.packages = {
  '': root,
  ...Object.fromEntries(Object.entries(rest).sort(([a], [b]) => a.localeCompare(b, 'en'))),
};
writeFileSync(path, `${JSON.stringify(lock, null, 2)}\n`);
process.stdout.write(`${added} entries added\n`);
