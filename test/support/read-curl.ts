/** Reads a curl command as a shell and curl would: `target` is path and query. Throws when it holds anything that the description has no need of. */
export function readCurl(command: string, variables: Readonly<Record<string, string>>) {
  const [program, ...words] = shellWords(command, variables);
  if (program !== 'curl') throw new Error(`not curl but ${program}`);
  let [method, target, body] = ['', '', undefined as string | undefined];
  const headers: Record<string, string> = {};
  for (let word = words.shift(); word !== undefined; word = words.shift()) {
    if (word === '-sS') continue;
    if (word === '-X') method = words.shift() ?? '';
    else if (word === '--data-binary') body = words.shift();
    else if (word === '-H') {
      const [, name = '', value = ''] = /^([\w-]+): (.*)$/s.exec(words.shift() ?? '') ?? [];
      headers[name] = value;
    } else if (word.startsWith('-')) throw new Error(`unknown option ${word}`);
    else target = word;
  }
  return { method: method || (body === undefined ? 'GET' : 'POST'), target, headers, body };
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
