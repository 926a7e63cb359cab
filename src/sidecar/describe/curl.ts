/** A request as the examples show it. */
export interface ExampleRequest {
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: { readonly type: string; readonly value: unknown };
}

/** The variables that hold address and API key in the commands; the command line reads them, too. */
export const URL_VARIABLE = 'PACKAGERDRM_URL';
export const API_KEY_VARIABLE = 'PACKAGERDRM_APIKEY';

/** A request as a command for a POSIX shell. */
export function curlCommand(
  method: string,
  path: string,
  { query = {}, headers = {}, body }: ExampleRequest,
  withApiKey: boolean,
): string {
  const search = new URLSearchParams(query).toString();
  const target = `"$${URL_VARIABLE}${path}${search && `?${search}`}"`;
  const options = [
    ...(withApiKey ? [`-H "x-api-key: $${API_KEY_VARIABLE}"`] : []),
    ...Object.entries(headers).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`),
    ...(body
      ? [`-H ${quoted(`content-type: ${body.type}`)}`, `--data-binary ${quoted(textOf(body.value))}`]
      : []),
  ];
  const verb = method === 'get' || (method === 'post' && body) ? '' : `-X ${method.toUpperCase()} `;
  return [`curl -sS ${verb}${target}`, ...options].join(' \\\n  ');
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2);
}

/** In single quotes a shell takes everything as it is, but for the single quote. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
