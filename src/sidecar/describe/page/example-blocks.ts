import { STATUS_CODES } from 'node:http';
import { type Html, html } from '../../../http/html';
import type { CodeSample, Operation } from '../document';
import { codeBlock, type Language } from './code-block';

/** The requests of an operation, each with its answer; one is open at a time. */
export function exampleBlocks({
  operationId,
  summary,
  responses,
  'x-codeSamples': samples,
}: Operation): Html {
  const [first, ...others] = samples;
  const blocks = (sample: CodeSample) => {
    const { example, status, type } = sample['x-answer'];
    const value = type && responses[status]?.content?.[type]?.examples?.[example]?.value;
    const caption = [status, STATUS_CODES[status], ...(type ? [`· ${type}`] : [])].join(' ');
    return html`${codeBlock('Request', sample.source, 'shell')}
${value === undefined ? html`<p class="empty-answer">${caption}</p>` : codeBlock(caption, textOf(value), languageOf(value))}`;
  };
  if (first && others.length === 0)
    return html`<h4 class="unseen">Example of ${summary}</h4>${blocks(first)}`;
  return html`<h4 class="unseen">Examples of ${summary}</h4>
${samples.map((sample) => html`<details name="${operationId}-examples"${sample === first && html` open`}><summary>${sample.label}</summary>${blocks(sample)}</details>`)}`;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2);
}

function languageOf(value: unknown): Language {
  if (typeof value !== 'string') return 'json';
  return /^[ +-] /.test(value) ? 'diff' : 'lines';
}
