package dataplane_test

import (
	"strings"
	"testing"
)

// TestShapesOfTheSeed asserts the form that the lookup of each of the seed's
// tables takes.
func TestShapesOfTheSeed(t *testing.T) {
	var got strings.Builder
	r := newExample(t, "seed/seed")
	for _, tb := range r.sw.Tables() {
		got.WriteString(tb.Name + ": " + string(tb.Shape) + "\n")
	}
	const want = `PipelineRootClassifier: exact eth_type
ARPSpoofGuard: exact in_port,ip_src,arp_sha
ARPResponder: subtables
Classifier: subtables
SpoofGuard: subtables
UnSNAT: exact ip_dst
ConntrackZone: single
ConntrackState: subtables
PreRoutingClassifier: single
NodePortMark: exact ip_dst
SessionAffinity: single
ServiceLB: subtables
EndpointDNAT: subtables
AntreaPolicyEgressRule: conjunction
EgressRule: conjunction
EgressDefaultRule: single
EgressMetric: subtables
L3Forwarding: subtables
EgressMark: subtables
L3DecTTL: subtables
SNATMark: subtables
SNAT: subtables
L2ForwardingCalc: exact eth_dst
TrafficControl: subtables
IngressSecurityClassifier: subtables
AntreaPolicyIngressRule: conjunction
IngressRule: conjunction
IngressDefaultRule: single
IngressMetric: subtables
ConntrackCommit: single
Output: subtables
`
	if got.String() != want {
		t.Errorf("the shapes are now\n%s", got.String())
	}
}
