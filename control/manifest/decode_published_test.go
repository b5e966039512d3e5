package manifest

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/antrail/antrail/control/cluster"
)

func publishedTier(text string) *Published {
	return &Published{APIVersion: "crd.antrea.io/v1beta1", Kind: "Tier", Object: &metav1.ObjectMeta{Name: "gold"}, JSON: []byte(text)}
}

func TestPublished(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: map[string]string{"app": "web"}}}
	p := Published{APIVersion: "v1", Kind: "Pod", Object: pod}
	obj, problems := p.Decode("api")
	if len(problems) > 0 || obj.Metadata().Key != (cluster.Key{Kind: cluster.KindPod, Namespace: "shop", Name: "web"}) || obj.Metadata().Source != (cluster.Source{File: "api"}) || obj.Metadata().Labels["app"] != "web" {
		t.Errorf("%+v, %v", obj, problems)
	}
	obj, problems = publishedTier(`{"apiVersion":"crd.antrea.io/v1beta1","kind":"Tier","metadata":{"name":"gold"},"spec":{"priority":7}}`).Decode("api")
	if len(problems) > 0 || obj.(*cluster.Tier).Priority != 7 {
		t.Errorf("%+v, %v", obj, problems)
	}
}

func TestPublishedRefused(t *testing.T) {
	badPod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Status: corev1.PodStatus{PodIP: "nonsense"}}
	for want, p := range map[string]*Published{
		"api: Pod/shop/web: status.podIPs[0]: ": {APIVersion: "v1", Kind: "Pod", Object: badPod},
		"kind Pod of v2 is not used here":       {APIVersion: "v2", Kind: "Pod", Object: badPod},
		"a *v1.Pod is no Node":                  {APIVersion: "v1", Kind: "Node", Object: badPod},
		"spec.priority: Invalid value: 900":     publishedTier(`{"metadata":{"name":"gold"},"spec":{"priority":900}}`),
		"spec.unknown: unknown field":           publishedTier(`{"metadata":{"name":"gold"},"spec":{"priority":9,"unknown":1}}`),
		"spec.priority: a string stands where":  publishedTier(`{"metadata":{"name":"gold"},"spec":{"priority":"9"}}`),
		"Tier/gold: unexpected end":             publishedTier(`{"metadata":`),
		"is larger than":                        publishedTier(strings.Repeat(" ", maxObject+1)),
	} {
		obj, problems := p.Decode("api")
		if obj != nil || len(problems) == 0 || !strings.Contains(problems[0].Error(), want) {
			t.Errorf("%v, %v; want %q", obj, problems, want)
		}
	}
}

// FuzzPublished: any JSON from an API server becomes an object or a problem.
func FuzzPublished(f *testing.F) {
	for name := range readers {
		f.Add(name.apiVersion, name.kind, []byte(`{"metadata":{"name":"a"},"spec":{"priority":5,"appliedTo":[{"podSelector":{}}]}}`))
	}
	f.Fuzz(func(t *testing.T, apiVersion, kind string, text []byte) {
		p := Published{APIVersion: apiVersion, Kind: kind, Object: &metav1.ObjectMeta{Namespace: "n", Name: "a"}, JSON: text}
		if obj, problems := p.Decode("api"); (obj == nil) == (len(problems) == 0) {
			t.Errorf("object %v, problems %v", obj, problems)
		}
	})
}
