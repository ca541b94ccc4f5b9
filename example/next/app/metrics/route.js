import { metricsResponse } from 'prom-client';
// Its metrics are shown before another route has been used.
import { registry } from '../application-metrics';

export const dynamic = 'force-dynamic';

export const GET = request => metricsResponse(registry, request);
