import { metricsResponse, register } from 'prom-client';
import '../application-metrics'; // so that its metrics are shown before another route has been used

export const dynamic = 'force-dynamic';

export const GET = request => metricsResponse(register, request);
