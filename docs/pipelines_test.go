package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// row is a statement of a document. tests are those that show it, as directory.TestName; none
// is "not yet". note says what a test leaves out, or what the equivalent on Linux is.
type row struct {
	id, says string
	tests    string
	note     string
}

// pipelineDocuments are the documents with their statements.
var pipelineDocuments = []struct {
	title, program, link string
	rows                 []row
}{
	{"Antrea on Windows, design of 2020", "windows2020", "pipeline/programs/windows2020.md", windowsRows},
	{"Contiv-VPP, two pods on one Node", "vppl3", "pipeline/programs/vppl3.md", routedRows},
	{"Antrea v1.15, external Nodes", "antrea", "pipeline/NonIP.md", externalRows},
	{"Antrea v1.15, networkPolicyOnly", "antrea", "nodes.md", policyOnlyRows},
}

// policyOnlyRows are the statements on policies beside another CNI.
var policyOnlyRows = []row{
	{"P-01", "The entries of a Node and a Pod", "tables.TestPolicyOnly", "compared with what Antrea's code makes"},
	{"P-02", "Every ARP request is answered with the Global Virtual MAC", "agent.TestAgentBesideAnotherCNI tables.TestPolicyOnly", ""},
	{"P-03", "The destination address says to which Pod a packet goes; everything else goes to the Node", "control.TestPolicyOnlyByPackets agent.TestAgentBesideAnotherCNI", ""},
	{"P-04", "No tunnel, no routes to other Nodes", "control.TestPolicyOnlyByPackets", ""},
	{"P-05", "Packets to Pods take the gateway in place of the other CNI's routes", "host.TestPodRoutes agent.TestAgentBesideAnotherCNI", "by a routing rule"},
	{"P-06", "The CNI plugin is chained behind another one", "", "a NodeConfig names the links"},
	{"P-07", "Policies hold between Pods, from the Node and from the outside", "agent.TestAgentBesideAnotherCNI control.TestPolicyOnlyByPackets", ""},
	{"P-08", "What is not enforced is refused", "control/manifest.TestPolicyOnly agent/config.TestPolicyOnly host.TestNotBridged", ""},
}

// externalRows are the statements on machines without pods.
var externalRows = []row{
	{"E-01", "The tables and entries of an external Node", "tables.TestExternalNode", "compared with what Antrea's code makes"},
	{"E-02", "A card and the machine's own interface are a pair of ports; IP passes from one to the other by the tables of policies", "control.TestExternalNodeByPackets agent.TestAgentOnExternalNode", "the operator moves the address"},
	{"E-03", "What is not IP passes at once", "agent.TestAgentOnExternalNode", "ARP"},
	{"E-04", "An ExternalNode is an ExternalEntity with its labels and addresses", "control/manifest.TestExternalNode agent.TestExternalNodeFromAPI", "of manifests or of the API; one interface, without a name"},
	{"E-05", "Policies and groups choose ExternalEntities, as peers and in appliedTo", "control/policy.TestExternalEntities control.TestExternalNodeByPackets", ""},
	{"E-06", "Actions are Allow, Drop and Reject", "control.TestExternalNodeByPackets agent.TestAgentOnExternalNode", ""},
	{"E-07", "policyBypassRules pass by the policies", "control.TestExternalNodeByPackets agent.TestAgentOnExternalNode", ""},
	{"E-08", "Features of Pods are refused", "control/manifest.TestExternalNodeRefused", ""},
	{"E-09", "Peers by FQDN", "", "refused on every Node"},
}

const w, v, u = "tables/windows2020.", "tables/vppl3.", "tables/uplink."

// realUplink is program uplink with real links, and sharedUplink with a card that stays the kernel's.
const realUplink, sharedUplink = "agent.TestAgentRunsUplink", "agent.TestSharedCard"

// ownedUplink is program uplink with a card whose addresses move, and uplinkPeers with two such Nodes.
const ownedUplink, uplinkPeers = "agent.TestOwnedCard", "agent.TestUplinkPeers"

// programPods are pods of programs uplink and windows2020 that the CNI plugin attaches.
const programPods = "cmd/antrail-cni.TestPodsOfPrograms"

// real are pods of Antrea's pipeline that are attached by layer 3, with real links.
const real, realPolicies = "cmd/antrail-cni.TestAttachedByLayer3", "cmd/antrail-cni.TestPoliciesByLayer3"

// windowsRows are the statements of the design for Windows Nodes.
var windowsRows = []row{
	{"W-01", "The card is a port of the switch, and the host's network another one, LOCAL", w + "TestFourKinds agent.TestAgentRunsProgram", "with real links the host's port has an ordinary number"},
	{"W-02", "Address, MAC and routes of the card move to the host's port, which has the card's MAC", "host.TestOwnedCard " + ownedUplink, "program uplink, mode owned"},
	{"W-03", "The gateway has the first address of the pods' range; the host forwards and has routes", uplinkPeers, "program uplink"},
	{"W-04", "A port for each pod; its address comes from host-local", programPods + " " + uplinkPeers, "programs uplink and windows2020"},
	{"W-05", "The tunnel port has the host's address as local_ip", "agent.TestUplinkTunnel", "program uplink"},
	{"W-06", "Order of start: network, extension, bridge, uplink", "agent.TestUplinkTunnel", "Linux has no HNS; entries come before ports, and the gateway last"},
	{"W-07", "CNI ADD is idempotent", programPods + " cni/node.TestVerbsInAnyOrder", "Linux calls once for each sandbox"},
	{"W-08", "From the host to the outside: to the card at once", w + "TestFourKinds", ""},
	{"W-09", "From the host to a pod of its own: into the pipeline", w + "TestFourKinds", ""},
	{"W-10", "From the card, an answer to a pod: conntrack, translation back, pipeline", w + "TestPodToExternal", ""},
	{"W-11", "From the card, the host's: to the host at once", w + "TestFourKinds " + w + "TestHostsOwnStream", ""},
	{"W-12", "Bit 17 of reg0 is set in L3Forwarding and used in ConntrackCommit and L2ForwardingOut", w + "TestDocumentsEntries " + w + "TestPodToExternal", ""},
	{"W-13", "Its conditions: from a pod; not to pods, nor the Node, nor of a Service", w + "TestNotTranslated " + w + "TestNodePort", ""},
	{"W-14", "The commit: ports 10000 to 20000 of the Node's address, mark 0x40", w + "TestDocumentsText " + w + "TestPodToExternal", ""},
	{"W-15", "The mark is read in ConntrackState", w + "TestDocumentsText", ""},
	{"W-16", "IP from the card goes to Conntrack, with nat", w + "TestDocumentsText", ""},
	{"W-17", "From the card with the mark: the Global Virtual MAC, on to DNAT", w + "TestDocumentsText " + w + "TestPodToExternal", ""},
	{"W-18", "With the mark and not from the card: on to DNAT", w + "TestDocumentsText " + w + "TestPodToExternal", ""},
	{"W-19", "The entries, letter by letter", w + "TestDocumentsEntries " + w + "TestDocumentsText", ""},
	{"W-20", "The packet leaves by the gateway, is routed by the host, enters again and leaves by the card", w + "TestPodToExternal agent.TestAgentRunsProgram", ""},
	{"W-21", "The answer is translated back and delivered", w + "TestPodToExternal " + w + "TestOtherProtocols", ""},
	{"W-22", "Pod to pod as on Linux", w + "TestNotTranslated " + w + "TestARPOfPods " + w + "TestForged", ""},
	{"W-23", "ClusterIP in the pipeline", w + "TestNotTranslated " + uplinkPeers, "one endpoint"},
	{"W-24", "NodePort by kube-proxy; its request enters by the gateway", w + "TestNodePort " + uplinkPeers, "kube-proxy is a test's own step, and rules of nftables with real sockets"},
	{"W-25", "The source distinguishes the host's traffic from pods'", w + "TestHostsOwnStream", ""},
	{"W-26", "Named pipes for local connections", "door.TestTalkManyDescriptors", "Linux has unix sockets"},
	{"W-27", "The agent is a host process that a DaemonSet manages", "hack/deploy.TestLeastRights", "Linux has a privileged container"},
	{"A-W1", "Four kinds of packets, and ARP", w + "TestFourKinds " + u + "TestFourKinds", ""},
	{"A-W2", "Pod to the outside and back: TCP, UDP, ICMP", w + "TestPodToExternal " + w + "TestOtherProtocols agent.TestAgentRunsProgram " + u + "TestPodToExternal " + u + "TestOtherProtocols " + realUplink + " " + sharedUplink, ""},
	{"A-W3", "What is not translated", w + "TestNotTranslated " + w + "TestAnswersOfAPod " + u + "TestNotTranslated " + u + "TestAnswersOfAPod " + sharedUplink + " " + uplinkPeers, "with real sockets by program uplink"},
	{"A-W4", "The host's streams go on", w + "TestHostsOwnStream agent.TestAgentRunsProgram " + u + "TestHostsOwnStream " + realUplink + " " + sharedUplink + " " + ownedUplink, "8 MB each way beside 50 connections of a pod"},
	{"A-W5", "Fail-open", sharedUplink + " " + ownedUplink + " host.TestOwnedCardKilledInTheMiddle", "mode owned: a killed agent leaves the switch, a killed switch comes back; after both, the systemd unit runs `antrail uninstall --card`"},
	{"A-W6", "All ports of the range are used, the next connection has a reason of its own", w + "TestExhaustion " + u + "TestExhaustion", "a search for a port ends before it has tried all, as in Open vSwitch"},
	{"A-W7", "NodePort from a pod to its own Node", w + "TestNodePort " + uplinkPeers, "with real sockets by program uplink"},
	{"A-W8", "CNI ADD twice", programPods + " cmd/antrail-cni.TestCNITool", ""},
	{"A-W9", "The dump is the document's text", w + "TestDocumentsEntries " + w + "TestDocumentsText", ""},
	{"A-W10", "The agent refuses loop mode without the sysctls", "agent.TestUplinkLoopNeedsSysctls host.TestCheckLoop", ""},
	{"A-W11", "Builds for Windows", "internal/rules.TestTableEngineBuildsElsewhere", "`hack/lint` builds the commands that need only files for Windows and macOS; `cmd/antrail.TestPortable` runs them. A running switch needs Linux"},
	{"A-W12", "Bridging, VLANs, flexible IPAM", "control.TestUnderlayByPackets control.TestUnderlayPoliciesByPackets agent.TestAgentOnUnderlay", "Antrea's pipeline with the gate AntreaIPAM; a NodeConfig says which Pod is in which VLAN"},
}

// routedRows are the statements of the walk of routed pods.
var routedRows = []row{
	{"V-01", "A pod's address is a /32", v + "TestOneMACAddress " + real, ""},
	{"V-02", "A pod's default route leads to PodGatewayIP", real, "the next hop is 169.254.1.1, which the Node's gateway does not have"},
	{"V-03", "PodGatewayIP is the same for all pods and on no interface", v + "TestNobodyAnswers " + real, ""},
	{"V-04", "A route of link scope to PodGatewayIP", real, ""},
	{"V-05", "Each pod resolves PodGatewayIP to its own link's MAC, without ARP", v + "TestNobodyAnswers " + v + "TestForged " + real, "pods hear what others ask by ARP, and ask nothing"},
	{"V-06", "A /32 route for each pod", v + "TestDocumentsExchange control.TestRoutedPodByPackets", ""},
	{"V-07", "Static ARP from a pod's address to its MAC", v + "TestDocumentsExchange " + real, ""},
	{"V-08", "All pods have one MAC", v + "TestOneMACAddress " + real, ""},
	{"V-09", "The input node is named after the port's driver", "agent.TestInputNodesByDriver", ""},
	{"V-10", "The order of the nodes", v + "TestDocumentsExchange", ""},
	{"V-11", "The reflective ACL, if a policy speaks of the pod", v + "TestPolicies " + v + "TestNoPolicies", ""},
	{"V-12", "nat44-out2in translates a Service's address", v + "TestService", ""},
	{"V-13", "The lookup finds the /32", v + "TestDocumentsExchange", ""},
	{"V-14", "TTL 64 to 63 on one Node, with the checksum", v + "TestDocumentsExchange " + v + "TestLastHop " + real, ""},
	{"V-15", "One combined list at the destination: both sides have to allow", v + "TestPolicies", ""},
	{"V-16", "The rewrite: the pod's MAC, from its own link's", v + "TestDocumentsExchange control.TestRoutedPodByPackets", ""},
	{"V-17", "The server's own reflective ACL has no effect on the answer", v + "TestDocumentsExchange", ""},
	{"V-18", "nat44-in2out, fast then slow", v + "TestDocumentsExchange " + v + "TestService", ""},
	{"V-19", "The answer passes by the session", v + "TestPolicies", ""},
	{"V-20", "A stanza for each node, with its time", "agent/answer.TestTraceIsTheDocuments", ""},
	{"V-21", "Headers as the document prints them", "agent/answer.TestTraceIsTheDocuments", ""},
	{"V-22", "The rewritten packet in hexadecimal", "agent/answer.TestTraceIsTheDocuments", "without VPP's adjacency"},
	{"V-23", "The ACL's tuple, and the NAT's session", "agent/answer.TestTraceIsTheDocuments", "the tuple; VPP's numbers of rules and sessions are not made up"},
	{"V-24", "Times of both packets", "agent/answer.TestTraceHasTimes", "no test asserts how long they take"},
	{"A-V1", "The attachment", v + "TestNobodyAnswers " + real + " cmd/antrail-cni.TestAttachedAsThePodSays", "no ARP is captured at both pods beside 52 echo requests between them; by configuration or by annotation"},
	{"A-V2", "The document's bytes and trace", v + "TestDocumentsExchange agent/answer.TestTraceIsTheDocuments agent/answer.TestDocumentsTraceOfRealPods", "with real links too"},
	{"A-V3", "TTL with and without routing", v + "TestDocumentsExchange " + w + "TestNotTranslated " + real, ""},
	{"A-V4", "Policies", v + "TestPolicies agent/answer.TestRoutedPolicies " + realPolicies, "with real sockets too"},
	{"A-V5", "20 pods of one MAC, each to each", v + "TestOneMACAddress agent/answer.TestRoutedMesh " + real, "with real sockets too"},
	{"A-V6", "The next hop does not answer", v + "TestNobodyAnswers " + real, ""},
	{"A-V7", "A trace under load", "dataplane.TestLiveOfALoadedLink dataplane.TestLiveChangesNothing", "`bench trace` and `bench trace-link` measure the cost; no test asserts a time"},
	{"A-V8", "A Service, and hairpin", v + "TestService " + v + "TestServiceOfItself agent/answer.TestRoutedPolicies " + realPolicies, "with real sockets too; an endpoint sees itself as the last address of the pods' range, as in VPP"},
	{"A-V9", "Input nodes by driver", "agent.TestInputNodesByDriver", ""},
}

// pipelinesText begins the page.
const pipelinesText = `# Pipelines: what the documents say, and what shows it

antrail runs the pipeline of Antrea, and programs that other documents describe. Here each statement of those documents has
the test that shows it. Numbers with A are acceptance tests. "Not yet" is what it says. A note says what a test leaves
out. One switch runs several programs on different ports (` + "`agent.TestAgentRunsTwoPrograms`" + `): each port may name its own.
Antrea's program shares it with vppl3 (` + "`cmd/antrail-cni.TestProgramBesideAntreas`" + `), but not with windows2020 and uplink, whose zones
are its own. There, ` + "`antrail.io/attach`" + ` also routes one pod and switches another.

A test writes this page: ` + "`go test ./docs -run TestPipelines -update`" + `.
`

// pipelinesPage is the page.
func pipelinesPage() string {
	var b strings.Builder
	b.WriteString(pipelinesText)
	for _, d := range pipelineDocuments {
		fmt.Fprintf(&b, "\n## %s\n\nProgram [%s](%s).\n\n| row | statement | shown by |\n|---|---|---|\n", d.title, d.program, d.link)
		for _, r := range d.rows {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", r.id, r.says, r.shown())
		}
	}
	return b.String()
}

// shown is a row's last column.
func (r *row) shown() string {
	var all []string
	for _, t := range strings.Fields(r.tests) {
		all = append(all, "`"+t+"`")
	}
	text := strings.Join(all, ", ")
	if text == "" {
		text = "not yet"
	}
	if r.note != "" {
		text += "; " + r.note
	}
	return text
}

// TestPipelines: docs/pipelines.md is what the rows say, every row is there once and in order,
// and every test that it names exists.
func TestPipelines(t *testing.T) {
	page := pipelinesPage()
	if *update {
		if err := os.WriteFile("pipelines.md", []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile("pipelines.md")
	if err != nil || string(have) != page {
		t.Errorf("docs/pipelines.md is not what would be written now (%v); write it with -update", err)
	}
	for i, d := range pipelineDocuments {
		checkRows(t, []string{"W", "V", "E", "P"}[i], []int{27, 24, 9, 8}[i], []int{12, 9, 0, 0}[i], d.rows)
		for _, r := range d.rows {
			for _, name := range strings.Fields(r.tests) {
				if !testExists(t, name) {
					t.Errorf("%s: there is no test %s", r.id, name)
				}
			}
		}
	}
}

// checkRows counts the rows of a document and its acceptance tests.
func checkRows(t *testing.T, letter string, statements, accepted int, rows []row) {
	t.Helper()
	var want []string
	for i := range statements {
		want = append(want, fmt.Sprintf("%s-%02d", letter, i+1))
	}
	for i := range accepted {
		want = append(want, fmt.Sprintf("A-%s%d", letter, i+1))
	}
	for i := range max(len(want), len(rows)) {
		if i >= len(want) || i >= len(rows) || rows[i].id != want[i] {
			t.Fatalf("row %d of %s is missing, or too much", i+1, letter)
		}
	}
}

// testExists looks for a test in the files of a directory.
func testExists(t *testing.T, name string) bool {
	t.Helper()
	dir, test, ok := strings.Cut(name, ".")
	files, err := filepath.Glob(filepath.Join("..", dir, "*_test.go"))
	if !ok || err != nil {
		return false
	}
	declares := regexp.MustCompile(`(?m)^func ` + regexp.QuoteMeta(test) + `\(t \*testing\.T\)`)
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if declares.Match(text) {
			return true
		}
	}
	return false
}
