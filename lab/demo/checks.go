package demo

import "context"

// check is one line of the table. run returns what it saw. The error says what it saw
// instead of the expected.
type check struct {
	name string
	run  func(context.Context, *world) (seen string, err error)
}

// checks is everything that the lab promises, in order. Later checks depend on earlier
// ones: a Service is checked after its endpoints can be reached.
var checks = []check{
	{"ping on one Node, both ways", ping("client-a", "web-a", "web-a", "client-a")},
	{"TCP on one Node, both ways", connect("client-a", "web-a:80", "db-a", "client-a:5001")},
	{"ping across Nodes, both ways", ping("client-a", "client-b", "client-b", "client-a")},
	{"TCP across Nodes, both ways", connect("client-a", "client-b:5001", "client-b", "client-a:5001")},
	{"UDP of 8000 bytes, in fragments, on one Node", datagrams("db-a", "client-a:5001")},
	{"UDP of 8000 bytes, in fragments, across Nodes and outside", datagrams("client-a", "client-b:5001", "client-a", "outside:5001")},
	{"the Node reaches its pods, policy or not", connect("node-a", "client-a:5001", "node-a", "db-a:3306")},
	{"TCP across Nodes, both ways at once", bothDirections},
	{"TCP across Nodes in bulk, SHA-256", bulk},
	{"the underlay carries sound packets of pods", underlay},
	{"ClusterIP, both endpoints over 200 connections", clusterIP},
	{"session affinity keeps one endpoint", affinity},
	{"Service without endpoints refuses at once", noEndpoints},
	{"hairpin: web-a asks its own Service", hairpin},
	{"pods to the outside host and back, masqueraded", outside},
	{"policy on web: clients reach TCP 80", connect("client-a", "web-a:80", "client-a", "web-b:80", "client-b", "web-a:80")},
	{"policy on web: any other TCP is dropped", webDenied},
	{"policy on db: web reaches TCP 3306", connect("web-a", "db-a:3306", "web-b", "db-a:3306", "web-a", "db-b:3306")},
	{"policy on db: everything else is dropped", dbDenied},
	{"forged source MAC is dropped", forged(forgedMAC)},
	{"forged source IP is dropped in SpoofGuard", forged(forgedIP)},
	{"forged ARP is dropped in ARPSpoofGuard", forged(forgedARP)},
}

// lastCheck runs after all other checks have sent their packets.
var lastCheck = check{"the switches account for every packet", accounted}

// objectChecks are further promises of the objects in examples/web-app: Services from
// outside, Egresses, TrafficControls and layer 7.
var objectChecks = []check{
	{"NodePort, from outside, pod and Nodes", nodePort},
	{"LoadBalancer and external IP, from everywhere", balanced},
	{"externalTrafficPolicy Local keeps the client", local},
	{"Egress of web by node-a, of clients by node-b", egress},
	{"policy on web: other TCP that it sends is dropped", webSends},
	{"redirect: all of web-a goes through the taps", redirect},
	{"mirror: a copy of db-a's connection, both ways", mirror},
	{"layer 7: TCP 8080 goes through the taps, 5 MB", layer7},
}
