// Reads a log line by line, takes method, path and query out of each by a regular expression, and counts the paths.
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';

const REQUEST = /"(GET|POST) (\/v1\/[^ ?]*)(?:\?([^ ]*))? HTTP\/[\d.]+"/;

async function main(path: string): Promise<void> {
  const counts = new Map<string, number>();
  for await (const line of createInterface({ input: createReadStream(path) })) {
    const route = REQUEST.exec(line)?.[2];
    if (route !== undefined) counts.set(route, (counts.get(route) ?? 0) + 1);
  }
  console.log(JSON.stringify([...counts]));
}

void main(process.argv[2] ?? '');
