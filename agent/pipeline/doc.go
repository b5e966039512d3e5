// Package pipeline is a switch with its entries, and the objects behind them. The switch is
// another process, or runs in this process with ports in memory. In memory it needs only files.
//
//	pipeline.go       the switch, its objects and its connections
//	flowfiles.go      flow entries, groups, meters and ports from files
//	manifests.go      entries made from the objects of a cluster, in files
//	program.go        a program by its name, and the purpose of its entries
//	installer.go      control installs into the switch, with programs beside the objects
//	delay.go          how long a change of an object takes to be in force
//	advice.go         a switch that does not answer
//	portrecords.go    ports, with the Pods behind them
//
// Dropped packets:
//
//	droplog.go, portdrops.go  the last dropped packets, in tables and at ports
//	dropreasons.go         their reasons
//	linkdrops.go           packets that links drop before ports receive them
//	tunneldrops.go         packets that nftables drop between gateway and tunnel
//	severed.go             notes on dropped packets: Pods without a link, silent Nodes
//	linkfault.go           Pods whose links are down or gone
//	silentnodes.go         Nodes that do not answer ARP or NDP
//
// Why:
//
//	tracerequest.go, tracewalk.go      a packet's walk through the tables; with names and objects
//	explainobject.go, objectstate.go  entry to object, object to entries; the state of an object
//	explaincookie.go            entries of a foreign controller, by their cookies
//	refusedobjects.go           objects that are refused and have no entries
//	refusededits.go             objects that keep their state because an edit is refused
//	why.go, whyends.go          may one end reach another: the question; the two ends
//	whydecide.go, whygoes.go    the decisions of policies; where the packet goes
//	whytell.go, whyseen.go      the answer as a sentence; packets that were seen so far
package pipeline
