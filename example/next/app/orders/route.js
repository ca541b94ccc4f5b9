import { orders } from '../application-metrics';

export async function POST(request) {
  const { gift } = await request.json();
  orders.inc({ kind: gift ? 'gift' : 'own' });
  return Response.json({ accepted: true }, { status: 201 });
}
