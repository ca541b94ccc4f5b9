module prometheus-3

go 1.25.0

tool github.com/prometheus/prometheus/cmd/prometheus

require github.com/prometheus/prometheus v0.308.1
