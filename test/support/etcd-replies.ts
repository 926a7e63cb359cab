import type { ServerResponse } from 'node:http';
import { type EtcdAnswers, type Member, VERSION } from './etcd-answers';
import { type Message, statusOf, UnreadableMessage } from './etcd-messages';
import { StoreError } from './etcd-store';

export const JSON_HEADERS = {
  'content-type': 'application/json',
  'grpc-metadata-content-type': 'application/grpc',
};

/** Answers a GET by its path. */
export function answerGet(
  answers: EtcdAnswers,
  member: Member,
  path: string,
  response: ServerResponse,
): void {
  const text = (status: number, body: string, type = 'text/plain; charset=utf-8') =>
    response.writeHead(status, { 'content-type': type }).end(body);
  if (path === '/version') text(200, `{"etcdserver":"${VERSION}","etcdcluster":"3.4.0"}`, 'application/json');
  else if (path === '/health')
    text(
      member.leaderless || answers.alarms.size > 0 ? 503 : 200,
      `{"health":"${!member.leaderless && answers.alarms.size === 0}"}${member.leaderless || answers.alarms.size > 0 ? '\n' : ''}`,
    );
  else if (path === '/metrics')
    text(200, answers.metrics(member), 'text/plain; version=0.0.4; charset=utf-8');
  else if (path.startsWith('/v3/')) text(405, 'Method Not Allowed\n');
  else text(404, '404 page not found\n');
}

export function writeJson(response: ServerResponse, message: Message, status = 200): void {
  response.writeHead(status, JSON_HEADERS).end(JSON.stringify(message));
}

/** What etcd refuses has trailers; what the gateway itself can't read has not. */
export function writeFault(response: ServerResponse, thrown: unknown, unreadable: number): void {
  const { message, code } =
    thrown instanceof StoreError || thrown instanceof UnreadableMessage
      ? { message: thrown.message, code: thrown instanceof StoreError ? thrown.code : unreadable }
      : { message: String(thrown), code: 13 };
  response.statusCode = statusOf(code);
  response.setHeader('content-type', 'application/json');
  const body = JSON.stringify({ error: message, message, code });
  if (!(thrown instanceof StoreError)) {
    response.end(body);
    return;
  }
  response.setHeader('Trailer', 'Grpc-Trailer-Content-Type');
  response.write(body);
  response.addTrailers({ 'Grpc-Trailer-Content-Type': 'application/grpc' });
  response.end();
}
