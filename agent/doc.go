// Package agent is a Node's agent: it launches the switch, a process of its own, tells it
// its entries and ports, looks after it, and answers for it.
//
// To know how an agent comes up and goes, read these in this order:
//
//	config.go, configplace.go  the configuration file, and where it is wrong
//	settings.go                parts of it that are the switch's settings: cards, connections
//	kubernetes.go, logging.go  the Kubernetes API, the log, which does not repeat itself
//	agent.go, group.go         start, run, stop; parts that run together
//	ownswitch.go               the switch that the agent launches, finds, revives and ends
//	remote.go, waiting.go      being the controller of the switch; until it answers
//	away.go                    no answers from a switch that is away
//	direct.go                  a switch without an agent, asked like one
//	pipeline.go, manifests.go  flow files, or objects of a cluster -> a switch with that pipeline
//	uninstall.go               what is left behind, and who takes it back
//
// The switch is kept in step with a cluster:
//
//	live.go, livekube.go    manifests that are watched, or the Kubernetes API
//	fits.go                 whether they describe this Node
//	installer.go, delay.go  what control installs, into the switch, and how soon
//	watches.go              how the API's watches stand
//	nodefacts.go            what the API tells of the Node before anything is opened
//	nodestatus.go           what the cluster is told of this Node
//	nodeside.go             what the switch asks of the Node around it
//
// Ports:
//
//	podports.go, drivers.go  those of pods come and go with their links; which driver each has
//	switchports.go           ports in the switch: opened by it, or given with their descriptors
//	security.go              port security: a Pod's port sends from the Pod's own MAC only
//	tunnel.go                the one to the other Nodes, and when there is none
//	cni.go, cnifiles.go      pods that the CNI plugin attaches; what the container runtime has of it
//	offload.go               what the kernel forwards by itself
//	awake.go                 whether idle processors stay awake while pods talk
//
// Kept over a restart:
//
//	shield.go                   Services' endpoints while connections are lost
//	snapshot.go                 entries, as text
//	snapshotfile.go             its file, and what it is believed for
//	snapshotkeep.go, resume.go  who writes it, and the way from it to what the manifests say
//	revalidate.go               restored connections, against the entries of now
//	files.go                    the paths of the agent's files
//	leave.go                    this agent leaves for one that takes its place
//
// Packets that entries send here are taken by agent/packetin. The switch has answered those
// that are refused.
//
// What can be asked:
//
//	api.go                        over the unix socket
//	client.go                     the other end of it
//	offline.go, replay.go         the same for files, without an agent; for a capture
//	text.go, records.go           the answers as text, in the manner of Open vSwitch's tools; as JSON
//	cache.go, conntrack.go        the connection cache; connections, listed and flushed
//	objects.go, object.go         the objects behind the entries; one of them in words
//	refusedobjects.go             objects that are refused, and that no entry comes from
//	explain.go, explaindump.go    entry -> object, object -> entries; dumps with the objects
//	map.go, counters.go           the pipeline as a map; what changes as packets pass
//	health.go, probe.go           is it alive, is it ready; the container's question
//	refusededits.go               objects that stay as they were before a refused edit
//	livecheck.go, echo.go         a look at itself, with echo requests
//	manifestcheck.go              a look at the objects of a configuration, before it is used
//	metrics.go, antreametrics.go  counters for Prometheus; under the names that Antrea's agent has
//	ctcounters.go, sums.go        of connections; what became of packets, in sums that agree
//	scrape.go                     metrics and health over TCP
//	page.go, pageserve.go         the page that people look at (package web); in a process of its own
//
// One packet and its way:
//
//	trace.go                    one that is made up, table by table
//	tracelive.go, tracearm.go   real ones, as they pass, and which of them
//	tracewalk.go                the walk with names and objects
//	tracewatch.go               walks at several agents, from outside
//	tracereplay.go              recorded ones, by the entries of now
//	rehearsal.go                real ones, on Nodes without machines
//	why.go, whyends.go          may one end reach another: the question, and the two ends
//	whytell.go, whyseen.go      the sentence; what was seen so far
//	whydecide.go, whygoes.go    in the sentence: what policies decided; where the packet goes
//	whyjoin.go, whytext.go      several Nodes; the answer as text
//	lost.go, lostports.go       the last lost packets, in the pipeline and at ports
//	linkdrops.go                what links drop before ports have it
//	tunneldrops.go              what nftables drop between gateway and tunnel
//	lostreasons.go, lostlog.go  their reasons; in the log
//	lostapi.go, losttext.go     for who asks; as text
//	lostfollow.go               lost packets as they come, with notes on links and Nodes
//	severed.go                  the notes: Pods whose links are down or gone, and silent Nodes
//	linkfault.go                links that are down or gone, in the words that all commands use
//	silent.go                   Nodes that do not answer, where packets to them are lost
//
// Goroutines: the switch's own (package dataplane), and those of the table in
// docs/architecture.md. Packets never come here, except those that an entry
// sends to the controller.
package agent
