package control

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antrail/antrail/control/store"
	"github.com/antrail/antrail/internal/antrailtest"
)

// onePortPolicy is a manifest of a NetworkPolicy that allows one port.
func onePortPolicy(name, port string) string {
	return "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: " + name + ", namespace: default}\n" +
		"spec:\n  podSelector: {}\n  ingress:\n  - ports:\n    - {port: " + port + "}\n---\n"
}

// TestRefusedEdits changes files step by step, and checks the objects that stay and their refused edits. A corrected edit
// disappears, and so does that of a deleted object. An object that never was good has no refused edit.
func TestRefusedEdits(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one.yaml"), filepath.Join(dir, "two.yaml")
	antrailtest.Write(t, onePortPolicy("a", "80")+onePortPolicy("b", "80"), one)
	antrailtest.Write(t, onePortPolicy("c", "80"), two)
	objects := store.NewStore(store.DeriveEndpoints)
	m, err := store.NewManifests(dir, objects)
	if err != nil {
		t.Fatal(err)
	}
	const refused = "one.yaml:8: spec.ingress[0].ports[0].port: Invalid value: 330600: must be between 1 and 65535, inclusive"
	for _, s := range []struct {
		name, file, text string
		edits, policies  string
	}{
		{"a port that is none", one, onePortPolicy("a", "330600") + onePortPolicy("b", "80"), "a " + refused, "a b c"},
		{"another file", two, onePortPolicy("c", "81"), "a " + refused, "a b c"},
		{"one that never was good", two, onePortPolicy("c", "81") + onePortPolicy("d", "330600"), "a " + refused, "a b c"},
		{"mended", one, onePortPolicy("a", "81") + onePortPolicy("b", "80"), "", "a b c"},
		{"a part that cannot be read", one, onePortPolicy("a", "81") + "spec: [\n", "b one.yaml:11: did not find expected node content", "a b c"},
		{"a file that cannot be read", one, "spec: [\n", "a one.yaml:2: did not find expected node content; b one.yaml:2: did not find expected node content", "a b c"},
		{"refused and deleted", one, onePortPolicy("a", "330600"), "a " + refused, "a c"},
		{"deleted", one, onePortPolicy("e", "80"), "", "c e"},
	} {
		antrailtest.Write(t, s.text, s.file)
		m.Read()
		if got := editLines(dir, objects); got != s.edits {
			t.Errorf("%s: %q, want %q", s.name, got, s.edits)
		}
		var there []string
		for _, k := range sortedKeys(objects.Snapshot().NetworkPolicies) {
			there = append(there, k.Name)
		}
		if got := strings.Join(there, " "); got != s.policies {
			t.Errorf("%s: policies %s, want %s", s.name, got, s.policies)
		}
	}
	if err := os.Remove(two); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(two, 0o700); err != nil { // a directory in place of the file
		t.Fatal(err)
	}
	m.Read()
	if got := editLines(dir, objects); got != "" {
		t.Errorf("a file that is gone: %q", got)
	}
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	defer os.Rename(dir+".away", dir)
	m.Read()
	if got := editLines(dir, objects); !strings.HasPrefix(got, "e ") || !strings.Contains(got, "no such file or directory; what was read before stays") {
		t.Errorf("the directory is gone: %q", got)
	}
}

// TestLastGoodPolicyStays changes a policy and its tier step by step. It checks the tier of the policy in force, the
// refused edits and the tiers. The policy ends only when it is deleted.
func TestLastGoodPolicyStays(t *testing.T) {
	dir := t.TempDir()
	antrailtest.Write(t, tierText("own", 110), filepath.Join(dir, "tier.yaml"))
	antrailtest.Write(t, tierPolicy("own", "podSelector: {}"), filepath.Join(dir, "policy.yaml"))
	objects := store.NewStore(store.DeriveEndpoints)
	m, err := store.NewManifests(dir, objects)
	if err != nil {
		t.Fatal(err)
	}
	const held = "own tier.yaml:1: it is deleted, and stays in force while policies are in it: ClusterNetworkPolicy/p is"
	for _, s := range []struct{ name, file, text, edits, inForce string }{
		{"as it came", "tier.yaml", tierText("own", 110), "", "p in own 110"},
		{"a tier that is none", "policy.yaml", tierPolicy("none", "podSelector: {}"), "p policy.yaml:1: spec.tier: there is no tier none", "p in own 110"},
		{"and its tier has a rank that is taken", "tier.yaml", tierText("own", 250), "p policy.yaml:1: spec.tier: there is no tier none; own tier.yaml:1: spec.priority: tier application has priority 250 already", "p in own 110"},
		{"and its tier is deleted", "tier.yaml", "", "p policy.yaml:1: spec.tier: there is no tier none; " + held, "p in own 110"},
		{"what is not supported", "policy.yaml", tierPolicy("own", "fqdn: example.org"), "p policy.yaml:1: spec.egress[0]: peer 0: peers by fqdn are not supported; " + held, "p in own 110"},
		{"mended, but for the tier", "policy.yaml", tierPolicy("own", "podSelector: {}"), held, "p in own 110"},
		{"another policy wants the tier", "other.yaml", strings.ReplaceAll(tierPolicy("own", "podSelector: {}"), "name: p", "name: q"), held, "p in own 110"},
		{"which goes", "other.yaml", "", held, "p in own 110"},
		{"the tier is back", "tier.yaml", tierText("own", 90), "", "p in own 90"},
		{"a tier that is none again", "policy.yaml", tierPolicy("none", "podSelector: {}"), "p policy.yaml:1: spec.tier: there is no tier none", "p in own 90"},
		{"mended by a tier that comes", "tier.yaml", tierText("own", 90) + "---\n" + tierText("none", 80), "", "p in none 80"},
		{"refused once more", "policy.yaml", tierPolicy("nowhere", "podSelector: {}"), "p policy.yaml:1: spec.tier: there is no tier nowhere", "p in none 80"},
		{"deleted", "policy.yaml", "", "", ""},
		{"without a good state before", "policy.yaml", tierPolicy("nowhere", "podSelector: {}"), "", ""},
	} {
		antrailtest.Write(t, s.text, filepath.Join(dir, s.file))
		m.Read()
		if got := editLines(dir, objects); got != s.edits {
			t.Errorf("%s: %q, want %q", s.name, got, s.edits)
		}
		now, inForce := objects.Snapshot(), ""
		for k, p := range now.AntreaPolicies {
			if inForce = k.Name + " in " + p.Tier; now.Tier(p.Tier) != nil {
				inForce += fmt.Sprintf(" %d", now.Tier(p.Tier).Priority)
			}
		}
		if inForce != s.inForce {
			t.Errorf("%s: in force %q, want %q", s.name, inForce, s.inForce)
		}
		if n := len(m.Problems()); (n > 0) != (s.edits != "" || strings.HasPrefix(s.name, "without")) {
			t.Errorf("%s: %d problems", s.name, n)
		}
	}
}

func tierText(name string, priority int) string {
	return fmt.Sprintf("apiVersion: crd.antrea.io/v1beta1\nkind: Tier\nmetadata: {name: %s}\nspec: {priority: %d}\n", name, priority)
}

func tierPolicy(tier, peer string) string {
	return "apiVersion: crd.antrea.io/v1beta1\nkind: ClusterNetworkPolicy\nmetadata: {name: p}\n" +
		"spec: {priority: 1, tier: " + tier + ", appliedTo: [{podSelector: {}}], egress: [{action: Drop, to: [{" + peer + "}]}]}\n"
}

// editLines returns the refused edits of a store, in order.
func editLines(dir string, objects *store.Store) string {
	var lines []string
	edits := objects.RefusedEdits()
	for _, k := range edits.Keys() {
		lines = append(lines, k.Name+" "+strings.ReplaceAll(edits[k], dir+string(filepath.Separator), ""))
	}
	return strings.Join(lines, "; ")
}
