// Package agent is a Node's agent: a process that decides what the switch does. It
// launches the switch as a process of its own, gives it entries and ports, follows the
// cluster's objects, attaches pods, and looks after the Node around the switch.
//
// Packages beneath it: config is the configuration, pipeline the switch with its entries
// and objects, answer the API's answers, api the client of that API, podports the ports of
// pods, packetin the packets that entries send to the agent, traceflow the Traceflows, and snapshot a file of
// entries. The switch itself answers packets that a policy rejects.
//
// How an agent starts, runs and ends:
//
//	agent.go, goroutines.go start, run, stop; parts that run together
//	ownswitch.go            the switch that the agent launches, finds, starts again and ends
//	remote.go, waiting.go   the agent as the controller of the switch; until the switch answers
//	serve.go                the API, metrics and the page, over a unix socket and TCP
//	health.go, probe.go     /healthz and /readyz; the probe of a container
//	leave.go, uninstall.go  another agent takes over; the Node's leftovers and their removal
//
// The switch follows a cluster:
//
//	live.go, livekube.go  manifests that are watched, or the Kubernetes API
//	nodefacts.go          what the API tells of the Node before any port is opened
//	nodestatus.go         what the agent tells the cluster of this Node, and of Traceflows
//	followswitch.go       what the switch needs of the Node around it
//
// Ports:
//
//	switchports.go        ports in the switch: opened by it, or given with their descriptors
//	tunnel.go             the port to the other Nodes
//	cni.go, cnifiles.go   pods that the CNI plugin attaches; the files of the container runtime
//	programpods.go        such pods without objects, of a program
//
// State that outlives a restart:
//
//	shieldtime.go               Services' endpoints while connections are lost
//	assignments.go              numbers of objects (agent/assignments) beside the switch's entries
//	resume.go                   from the entries of the agent before to those of the manifests
//	heldroutes.go               sockets of multicast routes, which the switch holds
//	revalidate.go               restored connections, against the entries of now
//
// Checks:
//
//	droplines.go         dropped packets and silent Nodes, in the log
//	livecheck.go, echo.go  the agent checks itself, and sends echo requests
//	manifestcheck.go     the objects of a configuration are checked before use
//
// Goroutines: see the table in docs/architecture.md. Packets never come here, except those
// that an entry sends to the controller.
package agent
