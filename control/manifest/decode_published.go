package manifest

import (
	"fmt"

	yaml "go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/antrail/antrail/control/cluster"
)

// Decoding of single objects from an API server. An object is of the published Go type, or JSON for
// Antrea's kinds. The readers and checks are those of manifests. A problem has the field, but no
// line.

// Published is an object from an API server.
type Published struct {
	APIVersion, Kind string
	// Object has the published type, such as *corev1.Pod for v1 Pod. If JSON is given, only the
	// namespace and name of Object are read.
	Object metav1.Object
	JSON   []byte
}

// Key is the object's key. It returns false for a kind that may be ignored.
func (p *Published) Key() (cluster.Key, bool) {
	r, ok := readers[typeName{p.APIVersion, p.Kind}]
	if !ok && unenforced(p.APIVersion, p.Kind) != "" {
		return cluster.Key{Kind: unenforcedKind(p.APIVersion, p.Kind), Namespace: clipName(p.Object.GetNamespace()), Name: clipName(p.Object.GetName())}, true
	}
	if !ok {
		return cluster.Key{}, false
	}
	k := cluster.Key{Kind: r.kind, Name: clipName(p.Object.GetName())}
	if r.namespaced {
		k.Namespace = clipName(p.Object.GetNamespace())
	}
	return k, true
}

// Decode checks and converts the object; source becomes its Source.File. An object with problems is
// refused whole.
func (p *Published) Decode(source string) (cluster.Object, []Problem) {
	c := &check{file: source, node: &yaml.Node{}, lines: lineMap{{}}}
	key, ok := p.Key()
	if !ok {
		return nil, []Problem{c.problem(0, "", fmt.Sprintf("kind %s of %s is not used here", Clip(p.Kind), Clip(p.APIVersion)))}
	}
	c.meta = cluster.Meta{Key: key, Source: cluster.Source{File: source}}
	if _, read := readers[typeName{p.APIVersion, p.Kind}]; !read {
		return nil, []Problem{c.problem(0, "", unenforced(p.APIVersion, p.Kind))}
	}
	obj := p.read(c)
	c.settle()
	if len(c.problems) > 0 {
		return nil, c.problems
	}
	return obj, nil
}

func (p *Published) read(c *check) cluster.Object {
	r := readers[typeName{p.APIVersion, p.Kind}]
	if p.JSON == nil {
		obj, ok := r.take(c, p.Object)
		if !ok {
			c.problems = append(c.problems, c.problem(0, "", fmt.Sprintf("a %T is no %s", p.Object, p.Kind)))
		}
		return obj
	}
	if len(p.JSON) > maxObject {
		c.problems = append(c.problems, c.problem(0, "", fmt.Sprintf("the object is larger than %d bytes", maxObject)))
		return nil
	}
	return r.build(c, p.JSON)
}
