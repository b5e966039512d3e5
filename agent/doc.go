// Package agent is a Node's agent: the process that decides what the switch does. It launches
// the switch as a separate process and gives it entries and ports. It follows the cluster's
// objects, attaches pods, and maintains the Node's side of the switch.
//
// Packages beneath it:
//
//   - config is the configuration.
//   - pipeline is the switch with its entries and objects.
//   - answer has the API's answers, api the client of that API, listing the tables of objects.
//   - podports has the ports of pods, and assignments the file of objects' numbers.
//   - packetin handles the packets that entries send to the agent. The switch itself answers
//     packets that a policy rejects.
//   - multicast keeps the members of groups.
//   - traceflow runs Traceflows.
//   - reach answers whether entries without objects let one end connect to another.
//   - support writes the archive of a support request.
//
// How an agent starts, runs and ends:
//
//	agent.go, goroutines.go start, run, stop; parts that run together
//	ownswitch.go            the switch that the agent launches, finds, restarts and ends
//	remote.go, waiting.go   the agent as the controller of the switch; until the switch answers
//	serve.go                the API, metrics and the page, over a unix socket and TCP
//	health.go, probe.go     /healthz and /readyz; the probe of a container
//	leave.go, uninstall.go  another agent takes over; the Node's leftovers and their removal
//
// The switch follows a cluster:
//
//	live.go, livekube.go  manifests that are watched, or the Kubernetes API
//	nodefacts.go          facts of the Node that the agent needs before it opens a port
//	nodestatus.go         the status of this Node and of Traceflows, for the cluster
//	followswitch.go       the Node's routes and rules that the switch needs
//
// Ports:
//
//	switchports.go        ports in the switch: opened by it, or given with their descriptors
//	tunnel.go             the port to the other Nodes
//	cni.go, cnifiles.go   pods that the CNI plugin attaches; the files of the container runtime
//	programpods.go        the plugin's pods on a Node that runs a program, without objects
//
// State that outlives a restart:
//
//	shieldtime.go               Services' endpoints while connections are lost
//	assignments.go              numbers of objects (agent/assignments) beside the switch's entries
//	resume.go                   from the previous agent's entries to those of the manifests
//	heldroutes.go               sockets of multicast routes, which the switch holds
//	revalidate.go               restored connections, against the current entries
//
// Checks:
//
//	droplines.go         dropped packets and silent Nodes, in the log
//	livecheck.go, echo.go  the agent checks itself, and sends echo requests
//	manifestcheck.go     the objects of a configuration are checked before use
//
// Goroutines: see the table in docs/architecture.md. The agent sees only packets that an entry
// sends to the controller.
package agent
