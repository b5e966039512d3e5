module github.com/antrail/antrail

go 1.25.0
