"""Words that people and tool descriptions use for the same thing, a group a line.

The groups are small and of this project's making: they hold the words of everyday tasks, where the one who asks says
"picture" and the tool says "image". What belongs to one trade alone is left to the word vectors.
"""

from __future__ import annotations

from functools import lru_cache

from .tokens import stem

_GROUPS = """
    email mail gmail inbox outlook
    image picture photo photograph
    video movie film clip footage
    music song track audio
    document doc docx word
    spreadsheet excel xlsx worksheet workbook sheet csv
    presentation powerpoint pptx slide slideshow deck
    repository repo github gitlab git
    issue ticket bug jira
    directory folder path
    delete remove erase drop
    create add new make generate insert
    update edit modify change alter set adjust amend
    search find lookup query discover locate
    fetch retrieve download obtain read
    send post publish submit deliver
    save store write persist keep
    disk file filesystem
    row record entry
    note memo annotation observation
    comment remark
    convert transform translate change
    language translate translation
    stock share equity ticker
    price cost quote rate fee cheap expensive affordable
    currency exchange forex dollar euro
    cryptocurrency crypto bitcoin coin token
    weather forecast temperature climate rain snow warm cold sunny
    flight airline airport plane
    hotel accommodation lodging stay booking
    restaurant dining food meal eat lunch dinner breakfast
    diet dietary vegan vegetarian gluten halal kosher allergy
    recipe cooking dish ingredient
    map location place geographic geocode
    direction route navigation itinerary
    trip travel journey vacation holiday
    job career employment vacancy hiring
    company business organization firm enterprise
    news headline article
    paper publication research scholarly academic literature arxiv
    calendar event schedule appointment meeting
    task todo reminder
    message chat sms text
    user account profile member customer
    login signin authenticate authentication auth
    password credential secret
    database sql table postgres mysql sqlite
    execute run invoke launch
    terminal shell command bash console
    website web site webpage page url link
    scrape crawl extract
    browser chrome playwright puppeteer
    screenshot capture snapshot
    chart graph plot diagram visualization visualize
    calculate compute calculation arithmetic math
    compare comparison difference diff
    summarize summary abstract digest
    health medical medicine clinical
    drug medication pharmaceutical
    doctor physician hospital clinic
    car vehicle auto automobile
    buy purchase order shop shopping product
    law legal regulation
    sport game match football soccer basketball
    code program script source
    log history journal
    monitor track watch
    container docker
    deploy deployment release
    cloud aws azure
    compress zip archive
    unzip decompress unpack archive extract
    light lamp bulb
    heating thermostat temperature warm
    phone telephone mobile
    invoice bill payment receipt
    refund reimbursement reimburse
    relation relationship acquaintance knows
    money cash finance financial budget
    pay payment transfer transaction spend spending expense money refund
    reply answer respond message
    free busy availability available calendar
    review rating rate star score
    reserve reservation book booking
    rent rental hire lease
    cancel abort revoke
    lesson course class tutorial education
    synonym thesaurus dictionary definition meaning
    timezone clock time
    helpdesk support ticket zendesk complaint
    client customer crm
    vendor supplier seller
    income revenue turnover earnings sales
    predict forecast extrapolate estimate projection
    tax vat gst
    instalment repayment mortgage loan debt
    overdue unpaid dunning arrears
    remind nudge reminder alert notify
    duplicate twice repeated same dedupe
    anonymise anonymize redact mask censor pseudonymise
    personal private pii confidential
    hyperlink link url href
    broken dead unreachable offline
    certificate cert ssl tls https
    expire lapse renewal expiring
    vulnerability vulnerable cve exploit security
    dependency library component requirement lockfile
    licence license gpl copyright
    flaky unreliable unstable intermittent randomly
    untested uncovered coverage
    exception error failure crash traceback
    slow performance latency bottleneck
    outlier anomaly unusual weird spike strange
    significant significance experiment variant
    retention churn
    survey questionnaire poll feedback
    opinion sentiment mood attitude
    resume cv curriculum vitae applicant candidate
    leave vacation holiday absence pto
    timesheet hours effort tracked
    hierarchy organigram org reports
    inventory stock warehouse article product reorder
    parcel package shipment shipping delivery label
    shrink resize scale smaller thumbnail
    caption subtitle srt
    podcast episode recording
    combine merge join stack concatenate together
    split cut divide segment
    flatten nested unnest
    infer derive deduce
    dashboard report overview
    deadline due
    agenda appointment calendar
    minutes protocol decision agree
    coordinate latitude longitude gps
    distance mileage kilometre mile
    anonymous unknown
    unit measure metric imperial fahrenheit celsius
    servings portion guest
    groceries supermarket shopping ingredient
    branch commit merge
    umbrella rain weather
    tidy clean normalise normalize sanitise mess
    column header heading title
    crosstab pivot tabulate aggregate
    picture jpg jpeg png photo
"""

EVERYDAY = frozenset(_GROUPS.split())
"""All words of the groups."""


@lru_cache(maxsize=1)
def synonyms() -> dict[str, frozenset[str]]:
    """For each stem the stems that mean the same in some group."""
    found: dict[str, frozenset[str]] = {}
    for line in _GROUPS.strip().splitlines():
        group = frozenset(stem(word) for word in line.split())
        for each in group:
            found[each] = found.get(each, frozenset()) | (group - {each})
    return found
