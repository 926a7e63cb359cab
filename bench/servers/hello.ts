import express from 'express';
import helmet from 'helmet';

// A bare Express and helmet server, to start and to weigh.
const app = express();
app.use(helmet());
app.use((_request, response) => {
  response.send('hello');
});
app.listen(Number(process.env.BENCH_PORT), '127.0.0.1');
