import type { Express } from 'express';
import { pathOf } from '../../../http/app';
import { type Html, html } from '../../../http/html';
import type { EmulatorContext } from '../context';
import {
  type Exchanged,
  JOURNAL_LIMITS,
  renderExchanged,
  type ShownExchange,
  secretsOf,
} from '../control/journal';
import {
  action,
  address,
  type Column,
  copyableLines,
  facts,
  pill,
  plainChoices,
  section,
  time,
} from './elements';
import { absent } from './forms';
import { mountPage } from './layout';
import { listOf } from './list';

const PATH = '/dashboard/requests';

/** The class of a status; 0 is a connection that ended before there was an answer. */
const classOf = ({ status }: Pick<Exchanged, 'status'>) =>
  status === 0 ? 'none' : `${Math.floor(status / 100)}xx`;

function statusPill(status: number): Html {
  const tone = status >= 500 ? 'danger' : status >= 400 ? 'warning' : status === 0 ? 'danger' : 'success';
  return pill(status === 0 ? 'no answer' : `${status}`, tone);
}

export function mountRequestPages(app: Express, context: EmulatorContext): void {
  const { journal } = context;
  mountPage(
    app,
    PATH,
    (asked) => {
      const hide = secretsOf(context);
      const pathIn = ({ url }: Exchanged) => hide(pathOf({ url }));
      const columns: readonly Column<Exchanged>[] = [
        ['Time', ({ at }) => time(at)],
        [
          'Request',
          (each) => html`<a href="${PATH}/${each.id}"><b>${each.method}</b> ${address(pathIn(each))}</a>`,
        ],
        ['Status', ({ status }) => statusPill(status)],
        ['Took', ({ ms }) => `${ms} ms`],
      ];
      const requests = journal.list();
      const methods = [...new Set(requests.map(({ method }) => method))].sort();
      return {
        aside: requests.length > 0 && action(PATH, 'Clear', 'the requests'),
        intro: `The latest ${JOURNAL_LIMITS.entries} requests of clients to the platform. Secrets are hidden. GET /requests on the control port has the same for tests.`,
        content: listOf('requests', requests, asked.query, {
          path: PATH,
          noun: { one: 'request', many: 'requests' },
          caption: 'Requests, the latest first',
          columns: () => columns,
          hint: 'method, path or status',
          texts: (each) => [each.method, pathIn(each), `${each.status}`],
          filters: [
            { name: 'method', choices: plainChoices(methods), of: ({ method }) => method },
            { name: 'status', choices: plainChoices(['2xx', '3xx', '4xx', '5xx', 'none']), of: classOf },
          ],
          empty: html`<p>No client has called yet.</p>`,
        }),
      };
    },
    {
      change() {
        journal.clear();
        return PATH;
      },
    },
  );
  mountPage(app, `${PATH}/:id`, (asked) => {
    const { id } = asked.request.params;
    const found = journal.list().find((each) => `${each.id}` === id);
    if (!found) throw absent('The journal has no request with this number.');
    const shown = renderExchanged(context, found);
    const { method, path, query, status, hint, answer } = shown;
    return {
      title: `${method} ${path}`,
      above: PATH,
      content: html`${hint !== null && html`<p class="message" data-variant="warning">${hint}</p>`}
        ${facts([
          ['Status', statusPill(status)],
          ['Time', time(found.at)],
          ['Took', `${shown.ms} ms`],
          query !== '' && ['Query', address(query)],
        ])}
        ${section('sent', 'Request', part('request', shown))}
        ${section('answered', 'Answer', part('answer', answer))}`,
    };
  });
}

function part(name: string, { headers, body, body_bytes: bytes }: ShownExchange['answer']): Html {
  const lines = Object.entries(headers).map(([header, value]) => `${header}: ${value}`);
  const text = typeof body === 'string' ? body : JSON.stringify(body, null, 2);
  const none = bytes ? `A body of ${bytes} bytes, which is not kept.` : 'No body.';
  return html`${copyableLines(`${name}-headers`, `Headers of the ${name}`, lines.join('\n'))}
    ${body === null ? html`<p class="muted">${none}</p>` : copyableLines(`${name}-body`, `Body of the ${name}`, text)}`;
}
