import type { CliContext } from '../context';
import { readSecretFile } from '../input';

/** The options that name a content at the key provider. */
export interface ProviderOptions {
  readonly client?: string;
  readonly clientApiKey?: string;
  readonly clientApiKeyFile?: string;
  readonly cmaf?: string | true;
}

/** The fields of the options that `put` and `apply` share; one that isn't given is undefined. */
export function providerFields(context: CliContext, options: ProviderOptions) {
  const { client, clientApiKey, clientApiKeyFile, cmaf } = options;
  return {
    client,
    clientApiKey: clientApiKeyFile === undefined ? clientApiKey : readSecretFile(context, clientApiKeyFile),
    // Each of its choices but `false` asks for the lines.
    cmaf: cmaf === undefined ? undefined : cmaf !== 'false',
  };
}
