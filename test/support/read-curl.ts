/** What a curl command of the API's description sends. */
export interface CurlRequest {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
  /** The fields of a form of several parts. */
  readonly form: readonly (readonly [name: string, value: string])[];
}

/** Reads a command as a shell and curl would. Throws when it holds anything that the description has no need of. */
export function readCurl(command: string, variables: Readonly<Record<string, string>>): CurlRequest {
  const [program, ...words] = shellWords(command, variables);
  if (program !== 'curl') throw new Error(`not curl but ${program}`);
  let [method, target, body] = ['', '', undefined as string | undefined];
  const headers: Record<string, string> = {};
  const form: (readonly [string, string])[] = [];
  const pairs: string[] = [];
  const pairOf = (text = '') => {
    const [name = '', ...value] = text.split('=');
    return [name, value.join('=')] as const;
  };
  for (let word = words.shift(); word !== undefined; word = words.shift()) {
    if (word === '-sS') continue;
    if (word === '-X') method = words.shift() ?? '';
    else if (word === '--data-binary') body = words.shift();
    else if (word === '-F') form.push(pairOf(words.shift()));
    else if (word === '--data-urlencode') {
      const [name, value] = pairOf(words.shift());
      pairs.push(`${name}=${encodeURIComponent(value)}`);
    } else if (word === '-H') {
      const [, name = '', value = ''] = /^([\w-]+): (.*)$/s.exec(words.shift() ?? '') ?? [];
      headers[name] = value;
    } else if (word.startsWith('-')) throw new Error(`unknown option ${word}`);
    else target = word;
  }
  if (pairs.length > 0) {
    body = pairs.join('&');
    headers['content-type'] = 'application/x-www-form-urlencoded';
  }
  const sends = body !== undefined || form.length > 0;
  return { method: method || (sends ? 'POST' : 'GET'), target, headers, body, form };
}

function shellWords(command: string, variables: Readonly<Record<string, string>>): string[] {
  const pieces = /'([^']*)'|"([^"]*)"|\\(\n|.)|(\s+)|([^\s'"\\]+)/gs;
  const words: string[] = [''];
  for (const [, single, double, escaped, space, plain] of command.matchAll(pieces)) {
    if (space !== undefined) words.push('');
    else if (escaped !== '\n') {
      const filled = double?.replaceAll(/\$(\w+)/g, (_whole, name) => variables[name] ?? '');
      words[words.length - 1] += single ?? filled ?? escaped ?? plain ?? '';
    }
  }
  return words.filter((word) => word !== '');
}
