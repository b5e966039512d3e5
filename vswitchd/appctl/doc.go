// Package appctl answers the commands of ovs-appctl(8) about a switch behind a door.
//
//	commands.go        the commands
//	listings.go        lists of entries, ports and learned addresses
//	lists.go           lists that antrail has in another form, or not at all
//	absent.go          commands about features that the switch lacks
//	refusals.go        refused commands, with their reasons
//	datapath.go        dpif/show-dp-features
//	connections.go     dpctl/…: tracked connections
//	ofprototrace.go    ofproto/trace: its arguments, and the packet
//	tracepasses.go     the steps of a walk, cut into passes
//	traceactions.go    the lines of one action
//	tracetree.go       the lines of a pass
//	flowtext.go        a packet's flow in one line
//	datapathactions.go the output as actions of a datapath
//	switch.go          the switch of the commands
//
// A trace has no line "Megaflow", because the masks of antrail's cache differ from those of Open
// vSwitch. A trace never learns, also with -generate or a packet.
package appctl
