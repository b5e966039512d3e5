package examples_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/examples"
)

// The sets: each has .flows, .groups, .meters and .ports.
var sets = []string{"seed/seed", "two-nodes/node-a", "two-nodes/node-b"}

// pipeline is the tables of every set, in the order in which a packet meets them.
var pipeline = []string{
	"PipelineRootClassifier", "ARPSpoofGuard", "ARPResponder", "Classifier", "SpoofGuard", "UnSNAT",
	"ConntrackZone", "ConntrackState", "PreRoutingClassifier", "NodePortMark", "SessionAffinity", "ServiceLB",
	"EndpointDNAT", "AntreaPolicyEgressRule", "EgressRule", "EgressDefaultRule", "EgressMetric", "L3Forwarding",
	"EgressMark", "L3DecTTL", "SNATMark", "SNAT", "L2ForwardingCalc", "TrafficControl",
	"IngressSecurityClassifier", "AntreaPolicyIngressRule", "IngressRule", "IngressDefaultRule", "IngressMetric",
	"ConntrackCommit", "Output",
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	b, err := examples.FS.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var tableOfLine = regexp.MustCompile(`(?m)^ ?table=(\w+),`)

// tablesInOrder is the tables of a flows file, as they first appear.
func tablesInOrder(flows string) (names []string) {
	for _, m := range tableOfLine.FindAllStringSubmatch(flows, -1) {
		if !slices.Contains(names, m[1]) {
			names = append(names, m[1])
		}
	}
	return names
}

func TestSetsHoldThePipelineInOrder(t *testing.T) {
	for _, set := range sets {
		if got := tablesInOrder(readFile(t, set+".flows")); !slices.Equal(got, pipeline) {
			t.Errorf("%s: tables are %q", set, got)
		}
	}
}

// swapped exchanges the two Nodes in a text.
var swapped = exchange(
	"node-a", "node-b", "client-a", "client-b", "web-a", "web-b", "db-a", "db-b",
	"10.10.0.26", "10.10.1.7", "10.10.0.24", "10.10.1.6", "10.10.0.25", "10.10.1.8",
	"0xa0a0018", "0xa0a0106", "10.10.0.0/24", "10.10.1.0/24", "10.10.0.1", "10.10.1.1",
	"10.96.0.24", "10.96.1.6", "192.168.77.102", "192.168.77.103",
	"ba:5e:d1:55:aa:c0", "ba:5e:d1:55:ab:c0", "5e:b5:e3:a6:90:b7", "5e:b5:e3:a6:91:b7",
	"fa:b7:53:74:21:a6", "fa:b7:53:74:22:a6", "36:48:21:a2:9d:b4", "36:48:21:a2:9e:b4",
)

// exchange replaces the first of each pair by the second and the other way round.
func exchange(pairs ...string) *strings.Replacer {
	both := slices.Clone(pairs)
	for i := 0; i < len(pairs); i += 2 {
		both = append(both, pairs[i+1], pairs[i])
	}
	return strings.NewReplacer(both...)
}

// The files of both Nodes are the same with their names and addresses exchanged, so the tests
// of one Node hold for the other.
func TestTheTwoNodesMirrorEachOther(t *testing.T) {
	for _, kind := range []string{".flows", ".groups", ".meters", ".ports"} {
		a := strings.Split(swapped.Replace(readFile(t, "two-nodes/node-a"+kind)), "\n")
		b := strings.Split(readFile(t, "two-nodes/node-b"+kind), "\n")
		for i := range max(len(a), len(b)) {
			if i >= len(a) || i >= len(b) || a[i] != b[i] {
				t.Errorf("node-b%s:%d is not node-a's line with the Nodes exchanged", kind, i+1)
				break
			}
		}
	}
}
