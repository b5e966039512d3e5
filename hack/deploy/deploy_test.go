// Package deploy checks what deploy/ says to a cluster: the Kustomize bases and the
// Helm chart give the same objects, and every field of them is one that Kubernetes
// knows; dashboards and alert rules ask for metrics that exist, in PromQL that
// Prometheus' own parser reads. It is a module of its own, for Kustomize, Helm and
// Prometheus are large.
package deploy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// built is what `kubectl apply -k` would apply: kind and name to YAML.
func built(t *testing.T, dir string) map[string]string {
	t.Helper()
	all, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), "../../deploy/kustomize/"+dir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := all.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return byName(t, string(text))
}

// rendered is what the chart gives with values.
func rendered(t *testing.T, values map[string]any) map[string]string {
	t.Helper()
	chart, err := loader.Load("../../deploy/helm/antrail")
	if err != nil {
		t.Fatal(err)
	}
	if err := chart.Validate(); err != nil {
		t.Fatal(err)
	}
	all, err := chartutil.ToRenderValues(chart, values, chartutil.ReleaseOptions{Name: "antrail"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		t.Fatal(err)
	}
	return byName(t, strings.Join(slices.Collect(maps.Values(files)), "\n---\n"))
}

// byName splits documents, and gives each its one form.
func byName(t *testing.T, text string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for doc := range strings.SplitSeq("\n"+text, "\n---\n") {
		var o map[string]any
		if err := yaml.UnmarshalStrict([]byte(doc), &o); err != nil {
			t.Fatalf("%v:\n%s", err, doc)
		}
		if len(o) == 0 {
			continue
		}
		form, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		all[fmt.Sprint(o["kind"], "/", o["metadata"].(map[string]any)["name"])] = string(form)
	}
	return all
}

// TestChartIsTheBase compares object by object.
func TestChartIsTheBase(t *testing.T) {
	base, chart := built(t, "base"), rendered(t, nil)
	if len(base) != 7 {
		t.Errorf("%d objects: %v", len(base), slices.Sorted(maps.Keys(base)))
	}
	for name := range maps.All(chart) {
		if base[name] == "" {
			t.Errorf("%s is only in the chart", name)
		}
	}
	for name, want := range base {
		if chart[name] != want {
			t.Errorf("%s of the chart:\n%s\nof the base:\n%s", name, chart[name], want)
		}
	}
}

// TestValues: what an operator sets comes where it belongs.
func TestValues(t *testing.T) {
	all := rendered(t, map[string]any{
		"namespace": "net", "image": map[string]any{"name": "example.org/antrail:1"},
		"apiServer": map[string]any{"host": "192.168.77.1", "port": 6443},
		"agent":     "kubernetes: {proxyAll: false}\n",
	})
	var d appsv1.DaemonSet
	if err := yaml.UnmarshalStrict([]byte(all["DaemonSet/antrail"]), &d); err != nil {
		t.Fatal(err)
	}
	c := d.Spec.Template.Spec.Containers[1]
	if sw := d.Spec.Template.Spec.Containers[0]; c.Name != "agent" || sw.Image != c.Image || sw.ImagePullPolicy != c.ImagePullPolicy {
		t.Errorf("containers %s of %s, %s of %s", sw.Name, sw.Image, c.Name, c.Image)
	}
	env := map[string]string{}
	for _, e := range c.Env {
		env[e.Name] = e.Value
	}
	if d.Namespace != "net" || c.Image != "example.org/antrail:1" || c.ImagePullPolicy != corev1.PullIfNotPresent ||
		env["KUBERNETES_SERVICE_HOST"] != "192.168.77.1" || env["KUBERNETES_SERVICE_PORT"] != "6443" {
		t.Errorf("%s", all["DaemonSet/antrail"])
	}
	for _, name := range []string{"ServiceAccount/antrail", "ConfigMap/antrail-config", "ClusterRoleBinding/antrail", "Role/antrail", "RoleBinding/antrail"} {
		if !strings.Contains(all[name], "namespace: net") {
			t.Errorf("%s", all[name])
		}
	}
	if !strings.Contains(all["ConfigMap/antrail-config"], "proxyAll: false") {
		t.Errorf("%s", all["ConfigMap/antrail-config"])
	}
}

// TestKnownFields reads every object as its type, strictly.
func TestKnownFields(t *testing.T) {
	for _, objects := range []map[string]string{built(t, "base"), built(t, "uninstall"), rendered(t, nil)} {
		for name, text := range objects {
			kind, _, _ := strings.Cut(name, "/")
			into := map[string]any{
				"ServiceAccount": &corev1.ServiceAccount{}, "ConfigMap": &corev1.ConfigMap{}, "DaemonSet": &appsv1.DaemonSet{},
				"ClusterRole": &rbacv1.ClusterRole{}, "ClusterRoleBinding": &rbacv1.ClusterRoleBinding{},
				"Role": &rbacv1.Role{}, "RoleBinding": &rbacv1.RoleBinding{},
			}[kind]
			if into == nil {
				t.Errorf("%s is of a kind that nobody expects", name)
				continue
			}
			if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestLeastRights: the pods are not privileged and have the capabilities that are
// documented; the role reads, and writes events, the Node's own report and statuses alone.
func TestLeastRights(t *testing.T) {
	var role rbacv1.ClusterRole
	if err := yaml.UnmarshalStrict([]byte(built(t, "base")["ClusterRole/antrail"]), &role); err != nil {
		t.Fatal(err)
	}
	writes := map[string]bool{"create events": true, "create antreaagentinfos": true, "patch antreaagentinfos": true,
		"patch clusternetworkpolicies/status": true, "patch networkpolicies/status": true, "patch traceflows/status": true}
	for _, r := range role.Rules {
		for _, v := range r.Verbs {
			for _, resource := range r.Resources {
				if v != "list" && v != "watch" && !writes[v+" "+resource] {
					t.Errorf("%s %s", v, resource)
				}
			}
		}
	}
	for _, dir := range []string{"base", "uninstall"} {
		for name, text := range built(t, dir) {
			var d appsv1.DaemonSet
			if !strings.HasPrefix(name, "DaemonSet/") {
				continue
			}
			if err := yaml.UnmarshalStrict([]byte(text), &d); err != nil {
				t.Fatal(err)
			}
			spec := d.Spec.Template.Spec
			for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
				wantLeastRights(t, name, &c)
			}
		}
	}
}

// rights are the capabilities of each container.
var rights = map[string][]corev1.Capability{
	"agent":     {"CHOWN", "NET_ADMIN", "NET_RAW", "SYS_ADMIN"},
	"uninstall": {"DAC_OVERRIDE", "NET_ADMIN", "NET_RAW", "SYS_ADMIN"}, // the switch's files belong to another user
}

// wantLeastRights checks one container. The switch has a list of system calls of its own.
func wantLeastRights(t *testing.T, of string, c *corev1.Container) {
	t.Helper()
	s, profile := c.SecurityContext, corev1.SeccompProfileTypeRuntimeDefault
	if c.Name == "switch" {
		profile = corev1.SeccompProfileTypeUnconfined
		if !*s.RunAsNonRoot || *s.RunAsUser == 0 || *s.RunAsGroup == 0 || *s.AllowPrivilegeEscalation {
			t.Errorf("%s: %+v", of, s)
		}
	}
	if s.Privileged != nil && *s.Privileged || s.SeccompProfile.Type != profile ||
		!*s.ReadOnlyRootFilesystem || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) {
		t.Errorf("%s: %s: %+v", of, c.Name, s)
	}
	if !slices.Equal(s.Capabilities.Add, rights[c.Name]) {
		t.Errorf("%s: %s: %v", of, c.Name, s.Capabilities.Add)
	}
}
