export const HELP = `Usage: npm run demo [-- --once]

Starts the key-file sidecar and the emulator of its upstreams on this machine's loopback, provisions the stream
"demo" through the sidecar's HTTP API, shows the key file and the commands that repeat it, and stays up until Ctrl-C.

  --once   ends after showing the key file
  --help   shows this text
`;

/** What the demo did, for the text that tells it. */
export interface Provisioned {
  readonly sidecarUrl: string;
  readonly emulatorUrl: string;
  readonly streamId: string;
  readonly apiKey: string;
  readonly request: Readonly<Record<string, string>>;
  readonly keyFile: string;
  readonly keyFilePath: string;
}

/** Tells what was done, shows the key file, and gives the commands that repeat it in a POSIX shell. */
export function guide(done: Provisioned): string {
  const { sidecarUrl, emulatorUrl, streamId, apiKey, request, keyFile, keyFilePath } = done;
  const curl = `curl -sS ${sidecarUrl}/api/keyfile/${streamId} -H 'x-api-key: ${apiKey}'`;
  return `The sidecar runs at ${sidecarUrl}, the emulator of its upstreams at ${emulatorUrl}.

The demo sent POST /api/keyfile/${streamId} to the sidecar. The sidecar fetched the client's shared secret from the
configuration service and the keys from the key provider, and wrote this key file for the packager:

${keyFile}
It lies at ${keyFilePath}

Provision it again:
  ${curl} -H 'content-type: application/json' -d '${JSON.stringify(request)}'
Read it:
  ${curl}
Delete it:
  ${curl} -X DELETE
`;
}
