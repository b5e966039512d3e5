//go:build linux

package ports

import "testing"

func TestAtLeast(t *testing.T) {
	for release, want := range map[string]bool{"6.2.0": true, "6.18.44-fc": true, "7.0": true, "6.1.0-50-cloud-amd64": false, "5.16": false, "none": false, "": false} {
		if atLeast(release, 6, 2) != want {
			t.Errorf("%s: %v", release, !want)
		}
	}
}
