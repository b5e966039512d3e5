package demo

import (
	"context"
	"slices"

	"github.com/antrail/antrail/agent/api"
)

// checks6 is what the lab promises of IPv6. Most of it is the same as for IPv4, by the same
// checks. Only forged neighbours differ.
var checks6 = []check{
	{"IPv6: ping on one Node and across, both ways", over6(ping("client-a", "web-a", "web-a", "client-a", "client-a", "client-b", "client-b", "client-a"))},
	{"IPv6: TCP on one Node and across, both ways", over6(connect("client-a", "web-a:80", "db-a", "client-a:5001", "client-a", "client-b:5001", "client-b", "client-a:5001"))},
	{"IPv6: UDP of 8000 bytes, in fragments", over6(datagrams("db-a", "client-a:5001", "client-a", "client-b:5001", "client-a", "outside:5001"))},
	{"IPv6: the Node reaches its pods, policy or not", over6(connect("node-a", "client-a:5001", "node-a", "db-a:3306"))},
	{"IPv6: TCP across Nodes, both ways at once", over6(bothDirections)},
	{"IPv6: the underlay carries sound packets of pods", over6(underlay)},
	{"IPv6: ClusterIP, both endpoints", over6(clusterIP)},
	{"IPv6: session affinity keeps one endpoint", over6(affinity)},
	{"IPv6: Service without endpoints refuses at once", over6(noEndpoints)},
	{"IPv6: hairpin", over6(hairpin)},
	{"IPv6: pods to the outside host, masqueraded", over6(outside)},
	{"IPv6: policies: web reaches db, clients reach web", over6(connect("client-a", "web-a:80", "client-b", "web-a:80", "web-a", "db-a:3306", "web-b", "db-a:3306"))},
	{"IPv6: policy on web: any other TCP is dropped", over6(webDenied)},
	{"IPv6: policy on db: everything else is dropped", over6(dbDenied)},
	{"IPv6: forged source MAC is dropped", over6(forged(forgedMAC))},
	{"IPv6: forged source IP is dropped in SpoofGuard", over6(forged(forgedIP))},
	{"IPv6: advertisement of another's address is dropped", over6(forged(forgedTarget))},
	{"IPv6: advertisement with another's MAC is dropped", over6(forged(forgedOption))},
	{"IPv6: solicitation with another's MAC is dropped", over6(forged(forgedSolicit))},
	{"IPv6: router advertisement from a pod is dropped", over6(forged(router))},
	{"IPv6: forged duplicate address detection is dropped", over6(forged(detection))},
}

// over6 is a check over IPv6.
func over6(run func(context.Context, *world) (string, error)) func(context.Context, *world) (string, error) {
	return func(ctx context.Context, w *world) (string, error) { return run(ctx, w.ipv6()) }
}

// checks are the checks for this lab. A pipeline without table IPv6, as of some flow files,
// gets no IPv6 checks. The objects of examples/web-app are known by their redirect port.
func (w *world) checks(ctx context.Context) ([]check, error) {
	var tables []api.Table
	if err := w.agent("node-a").JSON(ctx, "/tables", nil, &tables); err != nil {
		return nil, err
	}
	all := checks
	if slices.ContainsFunc(tables, func(t api.Table) bool { return t.Name == "IPv6" }) {
		all = slices.Concat(all, checks6)
	}
	rows, err := w.ports(ctx, "node-a")
	if err != nil {
		return nil, err
	}
	if _, redirects := rows["antrea-tc-tap0"]; redirects {
		all = slices.Concat(all, objectChecks)
	}
	return append(slices.Clip(all), lastCheck), nil
}
