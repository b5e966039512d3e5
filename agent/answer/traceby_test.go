package answer

import (
	"net/url"
	"strings"
	"testing"

	"github.com/antrail/antrail/agent/api"
)

// TestTraceNamesThePolicy: below the verdict on a packet that goes nowhere stands the
// policy and the rule, with objects explained and without.
func TestTraceNamesThePolicy(t *testing.T) {
	dir := whyCluster(t, `
apiVersion: crd.antrea.io/v1beta1
kind: ClusterNetworkPolicy
metadata: {name: guard}
spec:
  priority: 5
  appliedTo: [{podSelector: {matchLabels: {app: web}}}]
  ingress:
    - {name: no-ssh, action: Reject, ports: [{protocol: TCP, port: 22}]}
    - {name: no-telnet, action: Drop, ports: [{protocol: TCP, port: 23}]}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: db-closed, namespace: default}
spec: {podSelector: {matchLabels: {app: db}}, policyTypes: [Ingress]}
`, nil)
	c := whyClients(t, dir, "node-a")[0]
	const client = `in_port="client-a",tcp,dl_src=5e:b5:e3:a6:90:b7,nw_src=10.10.0.26,`
	const toWeb, toDB = client + "nw_dst=10.10.0.24,dl_dst=fa:b7:53:74:21:a6,", client + "nw_dst=10.10.0.25,dl_dst=36:48:21:a2:9d:b4,"
	for flow, want := range map[string]string{
		toWeb + "tp_dst=23":          "ClusterNetworkPolicy/guard (no-telnet)",
		toWeb + "tp_dst=22":          "ClusterNetworkPolicy/guard (no-ssh)",
		toDB + "tp_dst=3306":         "NetworkPolicy/default/db-closed",
		toWeb + "tp_dst=80":          "",
		toWeb + "nw_ttl=0,tp_dst=80": "",
		client + "nw_dst=10.101.255.29,dl_dst=ba:5e:d1:55:aa:c0,tp_dst=80":                       "", // no endpoint
		`in_port="client-a",tcp,nw_src=10.10.0.99,nw_dst=10.10.0.24,tp_dst=80`:                   "", // forged
		strings.Replace(toDB, "nw_src=10.10.0.26", "nw_src=10.10.0.24", 1) + "nw_ttl=1,tp_dst=1": "", // forged
	} {
		for begins, q := range map[string]url.Values{"\nBecause of: ": nil, "\n   because of ": {"explain": {"1"}}} {
			text, err := c.Post(t.Context(), "/trace", q, &api.TraceRequest{Flow: flow})
			if err != nil {
				t.Fatal(err)
			}
			_, by, _ := strings.Cut(string(text), begins)
			if by, _, _ = strings.Cut(by, "\n"); by != want {
				t.Errorf("%s: because of %q, want %q\n%s", flow, by, want, text)
			}
		}
	}
}
