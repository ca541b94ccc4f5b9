// A Nest application, with its metrics at /metrics.
// npx tsc --project example/nest && PORT=3000 node example/nest/build/main.js

import 'reflect-metadata';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Controller, Get, Injectable, Module, Param, Req, Res } from '@nestjs/common';
import type { MiddlewareConsumer, NestMiddleware, NestModule } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Histogram, collectDefaultMetrics, metricsHandler, register } from 'prom-client';

collectDefaultMetrics();

const durations = new Histogram({
  name: 'http_request_duration_seconds',
  help: 'Time from the request to the end of its response',
  labelNames: ['method', 'route', 'status'] as const,
});

// A middleware, because interceptors do not see requests that a guard refuses or that have no route.
@Injectable()
class DurationMiddleware implements NestMiddleware {
  use(request: IncomingMessage & { route?: { path: string } }, response: ServerResponse, next: () => void) {
    const end = durations.startTimer({ method: request.method });
    // The route, not the URL: every label value creates a series.
    response.on('close', () => end({ route: request.route?.path ?? 'none', status: response.statusCode }));
    next();
  }
}

@Controller('users')
class UsersController {
  @Get(':id')
  find(@Param('id') id: string) {
    return { id };
  }
}

@Controller('metrics')
class MetricsController {
  readonly #handle = metricsHandler(register);

  @Get()
  metrics(@Req() request: IncomingMessage, @Res() response: ServerResponse) {
    return this.#handle(request, response);
  }
}

@Module({ controllers: [UsersController, MetricsController] })
class ApplicationModule implements NestModule {
  configure(consumer: MiddlewareConsumer) {
    consumer.apply(DurationMiddleware).forRoutes('{*path}');
  }
}

async function start() {
  const application = await NestFactory.create(ApplicationModule, { logger: ['error'] });
  await application.listen(process.env.PORT ?? 3000, '127.0.0.1');
  console.log(`${await application.getUrl()}/metrics`);
}

start();
